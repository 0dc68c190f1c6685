/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the IR level: `func` blocks, whose instructions state what they do to each buffer. */
#include "graph/text/print.h"
#include "ir/ir.h"

#include "graph/number.h"

#include <stdio.h>
#include <string.h>

static void
print_buffer(const KilnBuffer *buffer, GString *out)
{
    bool made_here = buffer->kind == KILN_BUFFER_ALLOC || buffer->kind == KILN_BUFFER_VIEW;
    kiln_sigil_print(made_here ? '%' : '@', buffer->name, out);
}

static void
print_operand(const KilnBufferUse *use, GString *out)
{
    static const char *const accesses[] = { "@in ", "@out ", "@inout " };
    if (!use->buffer) {
        g_string_append_c(out, '_');
        return;
    }
    g_string_append(out, accesses[use->access]);
    print_buffer(use->buffer, out);
}

/* `{ relu; mul 0.5; add %b; leaky_relu {alpha=0.1} }` */
static void
print_steps(const KilnInstr *instr, GString *out)
{
    g_string_append(out, " {");
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        const KilnStackStep *step = &instr->steps[i];
        const KilnInstrInfo *info = kiln_instr_info(step->kind);
        g_string_append_printf(out, "%s%s", i ? "; " : " ", info->name);
        const KilnBuffer *further =
            step->operand >= 0 ? kiln_instr_operand(instr, (uint32_t)step->operand) : NULL;
        if (step->has_scalar) {
            g_string_append_c(out, ' ');
            kiln_print_f64(out, step->scalar);
        } else if (further) {
            g_string_append_c(out, ' ');
            print_buffer(further, out);
        }
        kiln_attrs_print_spaced(info->attrs, info->n_attrs, step->attrs, out);
    }
    g_string_append(out, " }");
}

static void
print_definition(const KilnInstr *instr, GString *out)
{
    const KilnBuffer *buffer = instr->operands[0].buffer;
    print_buffer(buffer, out);
    g_string_append(out, " = ");
    g_string_append(out, kiln_instr_info(instr->kind)->name);
    if (instr->kind == KILN_INSTR_view) {
        g_string_append_c(out, ' ');
        print_buffer(buffer->base, out);
        if (buffer->view_offset)
            g_string_append_printf(out, " {offset=%" G_GINT64_FORMAT "}", buffer->view_offset);
    } else if (buffer->offset >= 0) {
        g_string_append_printf(out, " at %" G_GINT64_FORMAT, buffer->offset);
    }
    g_string_append(out, " : ");
    kiln_type_print(&buffer->type, out);
}

static void
print_compute(const KilnInstr *instr, GString *out)
{
    const KilnInstrInfo *info = kiln_instr_info(instr->kind);
    g_string_append(out, info->name);
    if (instr->kind == KILN_INSTR_call) {
        g_string_append_c(out, ' ');
        kiln_sigil_print('@', instr->callee, out);
    }
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        g_string_append(out, i ? ", " : " ");
        print_operand(&instr->operands[i], out);
    }
    if (instr->kind == KILN_INSTR_stack)
        print_steps(instr, out);
    kiln_attrs_print_spaced(info->attrs, info->n_attrs, instr->attrs, out);
}

/* What the label would be without a name of its own. */
static const char *
name_of_result(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (use->access != KILN_ACCESS_IN && use->buffer)
            return use->buffer->name;
    }
    return NULL;
}

void
kiln_instr_print(const KilnInstr *instr, GString *out)
{
    if (instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view) {
        print_definition(instr, out);
    } else if (instr->kind == KILN_INSTR_dealloc) {
        g_string_append(out, "dealloc ");
        print_buffer(instr->operands[0].buffer, out);
    } else {
        print_compute(instr, out);
    }
    kiln_loc_print(instr->name, name_of_result(instr), out);
}

void
kiln_instr_dump(const KilnInstr *instr)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_instr_print(instr, text);
    fprintf(stderr, "%s\n", text->str);
}

static void
print_signature(const char *word, const GPtrArray *buffers, GString *out)
{
    for (guint i = 0; i < buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(buffers, i);
        bool weight = buffer->kind == KILN_BUFFER_WEIGHT;
        g_string_append_printf(out, "  %s ", word);
        print_buffer(buffer, out);
        if (weight && !buffer->constant) {
            g_string_append(out, " = _");
        } else if (weight && strcmp(buffer->constant->name, buffer->name) != 0) {
            g_string_append(out, " = ");
            kiln_sigil_print('@', buffer->constant->name, out);
        }
        g_string_append(out, " : ");
        kiln_type_print(&buffer->type, out);
        g_string_append(out, buffer->is_const ? " const\n" : "\n");
    }
}

void
kiln_ir_print(const KilnIRFunction *function, GString *out)
{
    g_string_append(out, "func ");
    kiln_sigil_print('@', function->name, out);
    g_string_append(out, " {\n");
    if (function->arena_bytes >= 0)
        g_string_append_printf(out, "  arena %" G_GINT64_FORMAT "\n", function->arena_bytes);
    print_signature("weight", function->weights, out);
    print_signature("input", function->inputs, out);
    print_signature("output", function->outputs, out);
    kiln_foreach_instr (instr, function) {
        kiln_print_indent(out, KILN_TEXT_INDENT);
        kiln_instr_print(instr, out);
        g_string_append_c(out, '\n');
    }
    g_string_append(out, "}\n");
}

gboolean
kiln_ir_module_print(const KilnIRModule *ir, const KilnPrintOptions *options, GString *out,
                     GError **error)
{
    gsize start = out->len;
    for (guint i = 0; i < ir->functions->len; i++) {
        g_string_append(out, i ? "\n" : "");
        kiln_ir_print(g_ptr_array_index(ir->functions, i), out);
    }
    return kiln_module_print_rest(ir->module, options, start, out, error);
}
