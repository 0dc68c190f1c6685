/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts stacks: members become steps, buffers between them results of steps. */
#include "passes/query_ir/stack_draft.h"

#include "graph/base/number.h"

#include <math.h>
#include <string.h>

enum {
    WRITTEN_MAX = 2 * KILN_STACK_STEPS_MAX, /* a copy of a result is one more buffer, and no step */
    /* As many uses as members can have, and the alloc and dealloc. */
    USES_MAX = KILN_STACK_STEPS_MAX * KILN_STACK_SOURCES_MAX + 2,
};

typedef struct {
    KilnInstr *const *members;
    uint32_t n_members;
    const KilnLives *lives;
    KilnStackDraft *draft;
    KilnBuffer *ins[KILN_STACK_OPERANDS_MAX];
    uint32_t n_in, n_steps;
    struct {
        KilnBuffer *buffer;
        uint32_t step; /* whose result it holds */
    } written[WRITTEN_MAX];
    uint32_t n_written;
    bool too_big, reads_reduced;
} Drafting;

/* --- what may be steps --- */

/* A step has no attributes that say how it rounds to such a type. */
static bool
is_low(KilnDType dtype)
{
    return kiln_dtype_is_low_float(dtype) || kiln_dtype_bits(dtype) < 8;
}

/* Quantized types only where a step converts or moves them, and there in types, not in operands. */
static bool
types_fit(const KilnInstr *instr)
{
    const KilnType *out = &instr->operands[0].buffer->type, *in = &instr->operands[1].buffer->type;
    bool quantized = false;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer && (kiln_dtype_is_address(buffer->type.dtype) || is_low(buffer->type.dtype)))
            return false;
        quantized |= buffer && buffer->type.quant;
    }
    switch (instr->kind) {
    case KILN_INSTR_quantize_linear:
        return out->quant && !in->quant;
    case KILN_INSTR_dequantize_linear:
        return in->quant && !out->quant;
    case KILN_INSTR_rescale_quantized:
        return in->quant && out->quant;
    case KILN_INSTR_copy:
        return kiln_quant_equal(in->quant, out->quant);
    default:
        return !quantized;
    }
}

bool
kiln_stack_takes(const KilnInstr *instr)
{
    uint32_t n = kiln_stack_n_sources(instr->kind);
    if (instr->kind == KILN_INSTR_stack)
        return true;
    if (!n)
        return false;
    uint32_t n_in = 0;
    for (uint32_t i = 1; i < instr->n_operands; i++)
        n_in += instr->operands[i].buffer != NULL;
    if (instr->kind == KILN_INSTR_clip ? n_in < 1 : n_in != n)
        return false;
    return types_fit(instr);
}

KilnType
kiln_stack_space_of(const KilnInstr *instr)
{
    KilnType space = instr->operands[kiln_stack_reduces(instr->kind)].buffer->type;
    if (instr->kind == KILN_INSTR_stack)
        kiln_stack_space(instr, &space);
    return space;
}

/* --- sources --- */

static bool
is_same(KilnBuffer *a, KilnBuffer *b)
{
    return a == b || (kiln_buffer_coincides(a, b) && kiln_type_equal(&a->type, &b->type));
}

bool
kiln_stack_number(const KilnLives *lives, const KilnBuffer *buffer, double *out)
{
    const KilnType *type = &buffer->type;
    uint8_t element[8] = { 0 }, again[8] = { 0 };
    if (buffer->kind != KILN_BUFFER_WEIGHT || !buffer->constant || type->quant ||
        kiln_type_elements(type) != 1 || kiln_lives_facts(lives, buffer)->n_writes ||
        !kiln_tensor_is_splat(buffer->constant->tensor, 1, element))
        return false;
    *out = kiln_element_as_f64(type->dtype, element, 0);
    kiln_element_store_f64(type->dtype, again, 0, *out);
    return memcmp(element, again, kiln_dtype_size(type->dtype)) == 0;
}

static KilnStackSource
operand_source(Drafting *at, KilnBuffer *buffer)
{
    KilnStackSource source = { KILN_STACK_OPERAND, 0, 0 };
    while (source.index < at->n_in && !is_same(at->ins[source.index], buffer))
        source.index++;
    if (source.index == KILN_STACK_OPERANDS_MAX) {
        at->too_big = true;
        source.index = 0;
    } else if (source.index == at->n_in) {
        at->ins[at->n_in++] = buffer;
    }
    return source;
}

/* The result that @buffer holds, else an operand. */
static KilnStackSource
source_of(Drafting *at, KilnBuffer *buffer)
{
    for (uint32_t i = at->n_written; i-- > 0;) {
        const uint32_t step = at->written[i].step;
        if (!is_same(at->written[i].buffer, buffer))
            continue;
        at->reads_reduced |= kiln_stack_reduces(at->draft->steps[step].kind);
        return (KilnStackSource){ KILN_STACK_STEP, step, 0 };
    }
    return operand_source(at, buffer);
}

/* --- steps --- */

static uint32_t
add_step(Drafting *at, const KilnStackStep *step)
{
    if (at->n_steps == KILN_STACK_STEPS_MAX) {
        at->too_big = true;
        return 0;
    }
    at->draft->steps[at->n_steps] = *step;
    at->draft->steps[at->n_steps].store = -1;
    return at->n_steps++;
}

static void
add_written(Drafting *at, KilnBuffer *buffer, uint32_t step)
{
    if (at->n_written == WRITTEN_MAX) {
        at->too_big = true;
        return;
    }
    at->written[at->n_written].buffer = buffer;
    at->written[at->n_written++].step = step;
}

/* A copy of a result is that result. */
static uint32_t
add_or_forward(Drafting *at, const KilnStackStep *step)
{
    if (step->kind == KILN_INSTR_copy && step->sources[0].kind == KILN_STACK_STEP)
        return step->sources[0].index;
    return add_step(at, step);
}

static void
draft_stack(Drafting *at, const KilnInstr *stack)
{
    uint32_t results[KILN_STACK_STEPS_MAX] = { 0 };
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        KilnStackStep step = stack->steps[i];
        int32_t store = step.store;
        for (uint32_t k = 0; k < step.n_sources; k++) {
            KilnStackSource *source = &step.sources[k];
            if (source->kind == KILN_STACK_STEP)
                source->index = results[source->index];
            else if (source->kind == KILN_STACK_OPERAND)
                *source = source_of(at, stack->operands[source->index].buffer);
        }
        results[i] = add_or_forward(at, &step);
        if (store >= 0)
            add_written(at, stack->operands[store].buffer, results[i]);
    }
}

static void
draft_instr(Drafting *at, const KilnInstr *instr)
{
    KilnBuffer *out = instr->operands[0].buffer;
    KilnStackStep step = { .kind = instr->kind,
                           .attrs = instr->attrs,
                           .dtype = out->type.dtype,
                           .quant = out->type.quant,
                           .n_sources = kiln_stack_n_sources(instr->kind) };
    bool typed = false;
    for (uint32_t k = 0; k < step.n_sources; k++) {
        KilnBuffer *in = kiln_instr_operand(instr, k + 1);
        bool condition = k == 0 && instr->kind == KILN_INSTR_where;
        double number = k == 1 ? -(double)INFINITY : (double)INFINITY; /* of a bound of clip */
        if (!in || (!condition && kiln_stack_number(at->lives, in, &number)))
            step.sources[k] = (KilnStackSource){ KILN_STACK_SCALAR, 0, number };
        else
            step.sources[k] = source_of(at, in);
        typed |= step.sources[k].kind != KILN_STACK_SCALAR;
    }
    if (!typed)
        step.sources[0] = operand_source(at, instr->operands[1].buffer);
    add_written(at, out, add_or_forward(at, &step));
}

/* --- results --- */

static bool
is_member(const Drafting *at, const KilnInstr *instr)
{
    for (uint32_t i = 0; i < at->n_members; i++) {
        if (at->members[i] == instr)
            return true;
    }
    return false;
}

/* Only members touch it: one that writes it, and others that read it then. */
static bool
vanishes(const Drafting *at, KilnBuffer *buffer)
{
    uint32_t n_reads = 0, n_writes = 0;
    if (buffer->kind != KILN_BUFFER_ALLOC || buffer->n_uses > USES_MAX)
        return false;
    for (uint32_t i = 0; i < at->n_in; i++) {
        if (kiln_buffer_origin(at->ins[i]) == buffer)
            return false;
    }
    kiln_foreach_buffer_use (use, buffer) {
        if (use->user == buffer->def || use->user->kind == KILN_INSTR_dealloc)
            continue;
        if (!is_member(at, use->user))
            return false;
        *(use->access == KILN_ACCESS_IN ? &n_reads : &n_writes) += 1;
    }
    return n_reads > 0 && n_writes == 1;
}

static void
store(Drafting *at, KilnBuffer *buffer, uint32_t result)
{
    KilnStackDraft *draft = at->draft;
    if (draft->steps[result].store >= 0) {
        KilnStackStep copy = { .kind = KILN_INSTR_copy,
                               .dtype = draft->steps[result].dtype,
                               .quant = draft->steps[result].quant,
                               .n_sources = 1,
                               .sources = { { KILN_STACK_STEP, result, 0 } } };
        result = add_step(at, &copy);
    }
    if (at->too_big || draft->n_out + at->n_in == KILN_STACK_OPERANDS_MAX) {
        at->too_big = true;
        return;
    }
    draft->steps[result].store = (int32_t)draft->n_out;
    draft->operands[draft->n_out++] = buffer;
}

/* What is not only handed on, reductions with @reduced. */
static void
store_results(Drafting *at, bool reduced)
{
    KilnStackDraft *draft = at->draft;
    for (uint32_t i = 0; i < at->n_written && !at->too_big; i++) {
        KilnBuffer *buffer = at->written[i].buffer;
        if (kiln_stack_reduces(draft->steps[at->written[i].step].kind) != reduced)
            continue;
        if (!vanishes(at, buffer))
            store(at, buffer, at->written[i].step);
        else
            draft->gone[draft->n_gone++] = buffer;
    }
}

/* The @in operands move behind the @out operands. */
static void
assemble(Drafting *at)
{
    KilnStackDraft *draft = at->draft;
    KilnInstr *instr = &draft->instr;
    memcpy(draft->operands + draft->n_out, at->ins, at->n_in * sizeof *at->ins);
    *instr = (KilnInstr){ .kind = KILN_INSTR_stack,
                          .n_operands = draft->n_out + at->n_in,
                          .operands = draft->uses,
                          .steps = draft->steps,
                          .n_steps = at->n_steps };
    for (uint32_t i = 0; i < instr->n_operands; i++)
        draft->uses[i] =
            (KilnBufferUse){ .buffer = draft->operands[i],
                             .access = i < draft->n_out ? KILN_ACCESS_OUT : KILN_ACCESS_IN,
                             .user = instr,
                             .index = i };
    for (uint32_t i = 0; i < at->n_steps; i++) {
        KilnStackStep *step = &draft->steps[i];
        for (uint32_t k = 0; k < step->n_sources; k++)
            step->sources[k].index +=
                step->sources[k].kind == KILN_STACK_OPERAND ? draft->n_out : 0;
    }
}

/* Where only reductions store, what is read must have all dims between it. */
static bool
has_space_of(const KilnInstr *stack, const KilnInstr *member)
{
    KilnType space;
    const KilnType whole = kiln_stack_space_of(member);
    return !kiln_stack_is_reduced(stack, 0) ||
           (kiln_stack_space(stack, &space) && kiln_type_same_shape(&space, &whole));
}

KilnStackDrafting
kiln_stack_draft(KilnInstr *const *members, uint32_t n, const KilnLives *lives,
                 KilnStackDraft *draft)
{
    Drafting at = { .members = members, .n_members = n, .lives = lives, .draft = draft };
    draft->n_out = draft->n_gone = 0;
    for (uint32_t i = 0; i < n && !at.too_big; i++) {
        if (members[i]->kind == KILN_INSTR_stack)
            draft_stack(&at, members[i]);
        else
            draft_instr(&at, members[i]);
    }
    store_results(&at, false);
    store_results(&at, true);
    if (at.too_big)
        return KILN_STACK_TOO_BIG;
    assemble(&at);
    if (at.reads_reduced)
        return KILN_STACK_READS_REDUCED;
    if (!has_space_of(&draft->instr, members[0]))
        return KILN_STACK_LOSES_SPACE;
    for (uint32_t i = 0; i < draft->n_out; i++) {
        for (uint32_t k = i + 1; k < draft->instr.n_operands; k++) {
            if (kiln_buffer_meets(draft->operands[i], draft->operands[k]))
                return KILN_STACK_OVERLAPS;
        }
    }
    return KILN_STACK_DRAFTED;
}
