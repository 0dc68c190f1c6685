/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: which steps they may have, their iteration space, and what their steps' types are. */
#include "ir/stack.h"

#include "graph/infer/infer.h"

uint32_t
kiln_stack_n_sources(KilnInstrKind kind)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    if (kiln_stack_reduces(kind))
        return 1;
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

/* --- reductions --- */

bool
kiln_stack_reduces(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_global_average_pool:
    case KILN_INSTR_global_max_pool:
    case KILN_INSTR_reduce_l1:
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_log_sum:
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_reduce_mean:
    case KILN_INSTR_reduce_min:
    case KILN_INSTR_reduce_prod:
    case KILN_INSTR_reduce_sum:
    case KILN_INSTR_reduce_sum_square:
        return true;
    default:
        return false;
    }
}

int
kiln_stack_reduced_dims(KilnInstrKind kind, const void *attrs, int rank)
{
    if (kind == KILN_INSTR_global_average_pool || kind == KILN_INSTR_global_max_pool)
        return MAX(rank - 2, 0);
    /* The attributes of all reductions are the axes alone. */
    const KilnInts axes = ((const KilnInstrAttrs_reduce_sum *)attrs)->axes;
    uint32_t reduced = 0;
    for (uint32_t i = 0; i < axes.n; i++) {
        int64_t axis = axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i];
        if (axis < 0 || axis >= rank)
            return 0;
        reduced |= 1u << axis;
    }
    int n = 0;
    while (n < rank && reduced >> (rank - 1 - n) & 1)
        n++;
    return reduced >> (rank - n) << (rank - n) == reduced ? n : 0;
}

bool
kiln_stack_is_reduced(const KilnInstr *stack, uint32_t out)
{
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        if (stack->steps[i].store == (int32_t)out && kiln_stack_reduces(stack->steps[i].kind))
            return true;
    }
    return false;
}

bool
kiln_stack_space(const KilnInstr *stack, KilnType *out)
{
    uint32_t i = 0;
    for (; i < stack->n_operands && stack->operands[i].access == KILN_ACCESS_OUT; i++) {
        *out = stack->operands[i].buffer->type;
        if (!kiln_stack_is_reduced(stack, i))
            return true;
    }
    *out = kiln_type_scalar(out->dtype);
    for (; i < stack->n_operands; i++) {
        const KilnType space = *out;
        if (!kiln_infer_broadcast_shapes(&space, &stack->operands[i].buffer->type, out, NULL))
            return false;
    }
    return true;
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
