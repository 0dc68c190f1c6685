/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the IR level as JSON with the pieces of the graph level. */
#include "ir/text/json.h"

#include "graph/binding.h"
#include "graph/text/json.h"
#include "ir/open.h"
#include "ir/stack.h"

static void
write_signature(KilnJson *json, const char *name, const GPtrArray *buffers)
{
    kiln_json_array(json, name);
    for (guint i = 0; i < buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(buffers, i);
        kiln_json_object(json, NULL);
        kiln_json_string(json, "name", buffer->name);
        kiln_json_type(json, "type", &buffer->type);
        if (buffer->constant)
            kiln_json_string(json, "constant", buffer->constant->name);
        if (buffer->kind == KILN_BUFFER_WEIGHT || buffer->is_const) {
            kiln_json_bool(json, "const", buffer->is_const);
        }
        if (buffer->unpacked)
            kiln_json_bool(json, "unpacked", true);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

static void
write_operands(KilnJson *json, const KilnInstr *instr)
{
    static const char *const accesses[] = { "in", "out", "inout" };
    kiln_json_array(json, "operands");
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (!use->buffer) {
            kiln_json_null(json, NULL);
            continue;
        }
        kiln_json_object(json, NULL);
        kiln_json_string(json, "buffer", use->buffer->name);
        kiln_json_string(json, "access", accesses[use->access]);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

/* {"step": 0}, {"operand": 2} or {"scalar": 0.5} each. */
static void
write_sources(KilnJson *json, const KilnStackStep *step)
{
    kiln_json_array(json, "sources");
    for (uint32_t k = 0; k < step->n_sources; k++) {
        const KilnStackSource *source = &step->sources[k];
        kiln_json_object(json, NULL);
        if (source->kind == KILN_STACK_SCALAR) {
            kiln_json_float(json, "scalar", source->scalar);
        } else {
            kiln_json_int(json, source->kind == KILN_STACK_STEP ? "step" : "operand",
                          source->index);
        }
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

static void
write_steps(KilnJson *json, const KilnInstr *instr)
{
    kiln_json_array(json, "steps");
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        const KilnStackStep *step = &instr->steps[i];
        const KilnInstrInfo *info = kiln_instr_info(step->kind);
        KilnType type = kiln_type_unranked(step->dtype);
        type.quant = step->quant;
        g_autoptr(GString) text = g_string_new(NULL);
        kiln_type_print_element(&type, text);
        kiln_json_object(json, NULL);
        kiln_json_string(json, "op", info->name);
        write_sources(json, step);
        kiln_json_string(json, "type", text->str);
        if (step->store >= 0)
            kiln_json_int(json, "store", step->store);
        kiln_json_attrs(json, info->attrs, info->n_attrs, step->attrs);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

/* A number, or the text of its expression. */
static void
add_open(KilnJson *json, const char *name, int64_t number, const KilnDim *open)
{
    g_autofree char *text = open ? kiln_dim_to_string(open) : NULL;
    if (text)
        kiln_json_string(json, name, text);
    else
        kiln_json_int(json, name, number);
}

static void
add_place(KilnJson *json, const KilnBuffer *view)
{
    const KilnViewOpen *open = view->view_open;
    add_open(json, "element_offset", view->view_offset, open ? open->offset : NULL);
    if (view->view_rows <= 1)
        return;
    add_open(json, "rows", view->view_rows, open ? open->rows : NULL);
    add_open(json, "pitch", view->view_pitch, open ? open->pitch : NULL);
}

static void
write_binding(KilnJson *json, const KilnDimBinding *binding)
{
    kiln_json_object(json, "dims");
    for (uint32_t i = 0; i < binding->n; i++)
        kiln_json_int(json, binding->names[i].name, binding->names[i].number);
    kiln_json_end_object(json);
}

static void
write_instr(KilnJson *json, const KilnInstr *instr)
{
    const KilnInstrInfo *info = kiln_instr_info(instr->kind);
    kiln_json_object(json, NULL);
    kiln_json_string(json, "op", info->name);
    kiln_json_string(json, "name", kiln_instr_label(instr));
    if (instr->callee)
        kiln_json_string(json, "callee", instr->callee);
    write_operands(json, instr);
    if (instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view) {
        const KilnBuffer *buffer = instr->operands[0].buffer;
        kiln_json_type(json, "type", &buffer->type);
        if (instr->kind == KILN_INSTR_view)
            add_place(json, buffer);
        if (buffer->offset >= 0)
            kiln_json_int(json, "offset", buffer->offset);
    }
    if (instr->kind == KILN_INSTR_stack)
        write_steps(json, instr);
    kiln_json_attrs(json, info->attrs, info->n_attrs, instr->attrs);
    kiln_json_end_object(json);
}

static void
write_function(KilnJson *json, const KilnIRFunction *function)
{
    kiln_json_object(json, NULL);
    kiln_json_string(json, "name", function->name);
    if (function->open)
        write_binding(json, kiln_open_binding(function));
    if (function->arena_bytes >= 0)
        kiln_json_int(json, "arena", function->arena_bytes);
    write_signature(json, "weights", function->weights);
    write_signature(json, "inputs", function->inputs);
    write_signature(json, "outputs", function->outputs);
    kiln_json_array(json, "instrs");
    kiln_foreach_instr (instr, function)
        write_instr(json, instr);
    kiln_json_end_array(json);
    kiln_json_end_object(json);
}

void
kiln_ir_json(const KilnIRModule *ir, GString *out)
{
    KilnJson json = { .out = out, .pretty = true };
    kiln_json_object(&json, NULL);
    kiln_json_int(&json, "schema_version", KILN_JSON_SCHEMA_VERSION);
    kiln_json_array(&json, "functions");
    for (guint i = 0; i < ir->functions->len; i++)
        write_function(&json, g_ptr_array_index(ir->functions, i));
    kiln_json_end_array(&json);
    kiln_json_constants(&json, ir->module);
    kiln_json_end_object(&json);
    g_string_append_c(out, '\n');
}
