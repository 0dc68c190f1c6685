/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: how they are made, and what their steps' types are. */
#include "ir/stack.h"

#include <string.h>

uint32_t
kiln_stack_n_sources(KilnInstrKind kind)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    bool moves = (info->flags & KILN_INSTR_MOVEMENT) && kind != KILN_INSTR_copy;
    if (!(info->flags & KILN_INSTR_DATA_PARALLEL) || moves || kind == KILN_INSTR_stack)
        return 0;
    if (kind == KILN_INSTR_clip)
        return 3;
    /* Of scales and zero points in operands, and of more than two operands of max and its like,
       steps have none. */
    uint32_t n = 0;
    for (const char *at = info->signature; *at; at++)
        n += *at == 'i' && at[1] != '?';
    return n;
}

/* --- types --- */

static bool
is_comparison(KilnInstrKind kind)
{
    return kind == KILN_INSTR_equal || kind == KILN_INSTR_greater ||
           kind == KILN_INSTR_greater_or_equal || kind == KILN_INSTR_less ||
           kind == KILN_INSTR_less_or_equal;
}

/* The element type says how the result is converted. */
static bool
is_conversion(KilnInstrKind kind)
{
    return kind == KILN_INSTR_cast || kind == KILN_INSTR_quantize_linear ||
           kind == KILN_INSTR_dequantize_linear || kind == KILN_INSTR_rescale_quantized;
}

/* The first of @step's sources, from @first on, that is no number. */
static const KilnStackSource *
typed_source(const KilnStackStep *step, uint32_t first)
{
    for (uint32_t i = first; i < step->n_sources; i++) {
        if (step->sources[i].kind != KILN_STACK_SCALAR)
            return &step->sources[i];
    }
    return NULL;
}

static KilnType
type_of(const KilnInstr *stack, const KilnStackSource *source)
{
    bool stored = source->kind == KILN_STACK_OPERAND;
    const KilnType *in = stored ? &stack->operands[source->index].buffer->type : NULL;
    const KilnStackStep *step = stored ? NULL : &stack->steps[source->index];
    KilnType type = kiln_type_unranked(stored ? in->dtype : step->dtype);
    type.quant = stored ? in->quant : step->quant;
    return type;
}

KilnDType
kiln_stack_source_dtype(const KilnInstr *stack, uint32_t step, uint32_t source)
{
    const KilnStackStep *at = &stack->steps[step];
    const KilnStackSource *from = &at->sources[source];
    if (from->kind == KILN_STACK_SCALAR && is_comparison(at->kind))
        from = typed_source(at, 0);
    if (!from || from->kind == KILN_STACK_SCALAR)
        return at->dtype;
    return type_of(stack, from).dtype;
}

const KilnQuant *
kiln_stack_source_quant(const KilnInstr *stack, uint32_t step, uint32_t source)
{
    const KilnStackSource *from = &stack->steps[step].sources[source];
    return from->kind == KILN_STACK_SCALAR ? NULL : type_of(stack, from).quant;
}

bool
kiln_stack_infer(const KilnInstr *stack, uint32_t i, KilnType *out)
{
    const KilnStackStep *step = &stack->steps[i];
    *out = kiln_type_unranked(KILN_DTYPE_bool);
    if (is_comparison(step->kind) || step->kind == KILN_INSTR_is_nan ||
        step->kind == KILN_INSTR_is_inf)
        return true;
    const KilnStackSource *source = typed_source(step, step->kind == KILN_INSTR_where);
    if (!source || is_conversion(step->kind))
        return false;
    *out = type_of(stack, source);
    return true;
}
