/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the IR level as JSON with the pieces of the graph level. */
#include "ir/text/json.h"

#include "graph/binding.h"
#include "graph/text/json.h"
#include "ir/open.h"
#include "ir/stack.h"

static void
add_int(JsonBuilder *builder, const char *name, int64_t value)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_int_value(builder, value);
}

static void
write_signature(JsonBuilder *builder, const char *name, const GPtrArray *buffers)
{
    json_builder_set_member_name(builder, name);
    json_builder_begin_array(builder);
    for (guint i = 0; i < buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(buffers, i);
        json_builder_begin_object(builder);
        kiln_json_string(builder, "name", buffer->name);
        kiln_json_type(builder, "type", &buffer->type);
        if (buffer->constant)
            kiln_json_string(builder, "constant", buffer->constant->name);
        if (buffer->kind == KILN_BUFFER_WEIGHT || buffer->is_const) {
            json_builder_set_member_name(builder, "const");
            json_builder_add_boolean_value(builder, buffer->is_const);
        }
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void
write_operands(JsonBuilder *builder, const KilnInstr *instr)
{
    static const char *const accesses[] = { "in", "out", "inout" };
    json_builder_set_member_name(builder, "operands");
    json_builder_begin_array(builder);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (!use->buffer) {
            json_builder_add_null_value(builder);
            continue;
        }
        json_builder_begin_object(builder);
        kiln_json_string(builder, "buffer", use->buffer->name);
        kiln_json_string(builder, "access", accesses[use->access]);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

/* {"step": 0}, {"operand": 2} or {"scalar": 0.5} each. */
static void
write_sources(JsonBuilder *builder, const KilnStackStep *step)
{
    json_builder_set_member_name(builder, "sources");
    json_builder_begin_array(builder);
    for (uint32_t k = 0; k < step->n_sources; k++) {
        const KilnStackSource *source = &step->sources[k];
        json_builder_begin_object(builder);
        if (source->kind == KILN_STACK_SCALAR) {
            json_builder_set_member_name(builder, "scalar");
            kiln_json_float(builder, source->scalar);
        } else {
            add_int(builder, source->kind == KILN_STACK_STEP ? "step" : "operand", source->index);
        }
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void
write_steps(JsonBuilder *builder, const KilnInstr *instr)
{
    json_builder_set_member_name(builder, "steps");
    json_builder_begin_array(builder);
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        const KilnStackStep *step = &instr->steps[i];
        const KilnInstrInfo *info = kiln_instr_info(step->kind);
        KilnType type = kiln_type_unranked(step->dtype);
        type.quant = step->quant;
        g_autoptr(GString) text = g_string_new(NULL);
        kiln_type_print_element(&type, text);
        json_builder_begin_object(builder);
        kiln_json_string(builder, "op", info->name);
        write_sources(builder, step);
        kiln_json_string(builder, "type", text->str);
        if (step->store >= 0)
            add_int(builder, "store", step->store);
        kiln_json_attrs(builder, info->attrs, info->n_attrs, step->attrs);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

/* A number, or the text of its expression. */
static void
add_open(JsonBuilder *builder, const char *name, int64_t number, const KilnDim *open)
{
    g_autofree char *text = open ? kiln_dim_to_string(open) : NULL;
    if (text)
        kiln_json_string(builder, name, text);
    else
        add_int(builder, name, number);
}

static void
add_place(JsonBuilder *builder, const KilnBuffer *view)
{
    const KilnViewOpen *open = view->view_open;
    add_open(builder, "element_offset", view->view_offset, open ? open->offset : NULL);
    if (view->view_rows <= 1)
        return;
    add_open(builder, "rows", view->view_rows, open ? open->rows : NULL);
    add_open(builder, "pitch", view->view_pitch, open ? open->pitch : NULL);
}

static void
write_binding(JsonBuilder *builder, const KilnDimBinding *binding)
{
    json_builder_set_member_name(builder, "dims");
    json_builder_begin_object(builder);
    for (uint32_t i = 0; i < binding->n; i++)
        add_int(builder, binding->names[i].name, binding->names[i].number);
    json_builder_end_object(builder);
}

static void
write_instr(JsonBuilder *builder, const KilnInstr *instr)
{
    const KilnInstrInfo *info = kiln_instr_info(instr->kind);
    json_builder_begin_object(builder);
    kiln_json_string(builder, "op", info->name);
    kiln_json_string(builder, "name", kiln_instr_label(instr));
    if (instr->callee)
        kiln_json_string(builder, "callee", instr->callee);
    write_operands(builder, instr);
    if (instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view) {
        const KilnBuffer *buffer = instr->operands[0].buffer;
        kiln_json_type(builder, "type", &buffer->type);
        if (instr->kind == KILN_INSTR_view)
            add_place(builder, buffer);
        if (buffer->offset >= 0)
            add_int(builder, "offset", buffer->offset);
    }
    if (instr->kind == KILN_INSTR_stack)
        write_steps(builder, instr);
    kiln_json_attrs(builder, info->attrs, info->n_attrs, instr->attrs);
    json_builder_end_object(builder);
}

static void
write_function(JsonBuilder *builder, const KilnIRFunction *function)
{
    json_builder_begin_object(builder);
    kiln_json_string(builder, "name", function->name);
    if (function->open)
        write_binding(builder, kiln_open_binding(function));
    if (function->arena_bytes >= 0)
        add_int(builder, "arena", function->arena_bytes);
    write_signature(builder, "weights", function->weights);
    write_signature(builder, "inputs", function->inputs);
    write_signature(builder, "outputs", function->outputs);
    json_builder_set_member_name(builder, "instrs");
    json_builder_begin_array(builder);
    kiln_foreach_instr (instr, function)
        write_instr(builder, instr);
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}

gboolean
kiln_ir_json(const KilnIRModule *ir, GString *out)
{
    JsonBuilder *builder = json_builder_new();
    json_builder_begin_object(builder);
    add_int(builder, "schema_version", KILN_JSON_SCHEMA_VERSION);
    json_builder_set_member_name(builder, "functions");
    json_builder_begin_array(builder);
    for (guint i = 0; i < ir->functions->len; i++)
        write_function(builder, g_ptr_array_index(ir->functions, i));
    json_builder_end_array(builder);
    kiln_json_constants(builder, ir->module);
    json_builder_end_object(builder);
    kiln_json_finish(builder, out);
    return TRUE;
}
