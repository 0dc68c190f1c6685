/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the IR level: `func` blocks, whose instructions state what they do to each buffer. */
#include "graph/text/print.h"
#include "ir/open.h"
#include "ir/stack.h"

#include "graph/base/names.h"
#include "graph/base/number.h"
#include "ir/ir.h"

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

/* --- stacks --- */

/* The first @in operand, or the step before: what a step without parentheses begins with. */
static bool
is_implicit(const KilnInstr *stack, uint32_t i)
{
    const KilnStackSource *source = &stack->steps[i].sources[0];
    if (i > 0)
        return source->kind == KILN_STACK_STEP && source->index == i - 1;
    uint32_t first = 0;
    while (stack->operands[first].access == KILN_ACCESS_OUT)
        first++;
    return source->kind == KILN_STACK_OPERAND &&
           kiln_instr_operand(stack, source->index) == kiln_instr_operand(stack, first);
}

/* Steps that others name. */
static void
find_named(const KilnInstr *stack, bool *named)
{
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        const KilnStackStep *step = &stack->steps[i];
        for (uint32_t k = is_implicit(stack, i); k < step->n_sources; k++) {
            if (step->sources[k].kind == KILN_STACK_STEP)
                named[step->sources[k].index] = true;
        }
    }
}

static void
print_source(const KilnInstr *stack, const KilnStackSource *source, GString *out)
{
    if (source->kind == KILN_STACK_STEP)
        g_string_append_printf(out, "t%u", source->index);
    else if (source->kind == KILN_STACK_OPERAND)
        print_buffer(kiln_instr_operand(stack, source->index), out);
    else
        kiln_print_f64(out, source->scalar);
}

/* `relu`, `mul 0.5`, `t3: add(%a, t0)`, `cast : i32`, `sigmoid -> %y` */
static void
print_step(const KilnInstr *stack, uint32_t i, bool last_alone, GString *out)
{
    const KilnStackStep *step = &stack->steps[i];
    const KilnInstrInfo *info = kiln_instr_info(step->kind);
    bool implicit = is_implicit(stack, i);
    g_string_append(out, info->name);
    g_string_append(out, implicit ? "" : "(");
    for (uint32_t k = implicit; k < step->n_sources; k++) {
        g_string_append(out, k > implicit ? ", " : implicit ? " " : "");
        print_source(stack, &step->sources[k], out);
    }
    g_string_append(out, implicit ? "" : ")");
    kiln_attrs_print_spaced(info->attrs, info->n_attrs, step->attrs, out);
    KilnType type;
    if (step->store < 0 && !kiln_stack_infer(stack, i, &type)) {
        type = kiln_type_unranked(step->dtype);
        type.quant = step->quant;
        g_string_append(out, " : ");
        kiln_type_print_element(&type, out);
    }
    if (step->store >= 0 && !last_alone) {
        g_string_append(out, " -> ");
        print_buffer(kiln_instr_operand(stack, (uint32_t)step->store), out);
    }
}

/* `{ t0: sigmoid; mul(%a, t0) }` */
static void
print_steps(const KilnInstr *stack, GString *out)
{
    bool named[KILN_STACK_STEPS_MAX] = { false };
    bool one_out = stack->operands[1].access == KILN_ACCESS_IN;
    find_named(stack, named);
    g_string_append(out, " {");
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        g_string_append(out, i ? "; " : " ");
        if (named[i])
            g_string_append_printf(out, "t%u: ", i);
        print_step(stack, i, one_out && i + 1 == stack->n_steps, out);
    }
    g_string_append(out, " }");
}

/* `{offset=16}`, `{rows=4, pitch=40}`; nothing where the view begins where its base does. */
static void
print_place(const KilnBuffer *view, GString *out)
{
    const char *separator = " {";
    const KilnViewOpen *open = view->view_open;
    if (view->view_offset) {
        g_string_append_printf(out, "%soffset=", separator);
        kiln_print_number(view->view_offset, open ? open->offset : NULL, out);
        separator = ", ";
    }
    if (view->view_rows > 1) {
        g_string_append_printf(out, "%srows=", separator);
        kiln_print_number(view->view_rows, open ? open->rows : NULL, out);
        g_string_append(out, ", pitch=");
        kiln_print_number(view->view_pitch, open ? open->pitch : NULL, out);
        separator = ", ";
    }
    if (*separator == ',')
        g_string_append_c(out, '}');
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
        print_place(buffer, out);
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
        g_string_append(out, buffer->is_const ? " const" : "");
        g_string_append(out, buffer->unpacked ? " unpacked\n" : "\n");
    }
}

/* `dims past=67, t=61`, and `require "y": 4*floor(N/4) = N` for what must be equal. */
static void
print_open(const KilnOpen *open, GString *out)
{
    for (uint32_t i = 0; i < open->binding->n; i++) {
        g_string_append(out, i ? ", " : "  dims ");
        kiln_word_print(open->binding->names[i].name, out);
        g_string_append_printf(out, "=%" G_GINT64_FORMAT, open->binding->names[i].number);
    }
    g_string_append(out, open->binding->n ? "\n" : "");
    for (guint i = 0; i < open->rules->len; i++) {
        const KilnOpenRule *rule = &g_array_index(open->rules, KilnOpenRule, i);
        g_string_append(out, "  require ");
        kiln_string_print(rule->what, out);
        g_string_append(out, ": ");
        kiln_dim_print(rule->a, out);
        g_string_append(out, " = ");
        kiln_dim_print(rule->b, out);
        g_string_append_c(out, '\n');
    }
}

void
kiln_ir_print(const KilnIRFunction *function, GString *out)
{
    g_string_append(out, "func ");
    kiln_sigil_print('@', function->name, out);
    g_string_append(out, " {\n");
    if (function->open)
        print_open(function->open, out);
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
