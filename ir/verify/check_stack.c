/* SPDX-License-Identifier: Apache-2.0 */
/* The check of stacks: operands of one iteration space, steps whose types hang together, nothing
 * that is computed and lost. Which element types a step takes is the kernels' business. */
#include "ir/verify/check_priv.h"
#include "ir/stack.h"

#include <string.h>

/* --- operands --- */

/* Aligned at the last dim, every dim of @in is 1 or that of @out. */
static bool
broadcasts_to(const KilnType *in, const KilnType *out)
{
    for (int d = 1; d <= in->rank; d++) {
        int64_t dim = in->dims[in->rank - d];
        if (d > out->rank || (dim != 1 && dim != out->dims[out->rank - d]))
            return false;
    }
    return true;
}

static gboolean
check_operand(const KilnInstr *stack, uint32_t i, GError **error)
{
    const KilnBufferUse *uses = stack->operands, *use = &uses[i];
    if (!use->buffer)
        return kiln_throw(error, KILN_ERROR_INVALID, "operand %u is required, found none", i);
    if (kiln_dtype_is_address(use->buffer->type.dtype))
        return kiln_throw(error, KILN_ERROR_INVALID, "operand %u: expected numbers, found strings",
                          i);
    if (use->access == KILN_ACCESS_IN ||
        (use->access == KILN_ACCESS_OUT && uses[i ? i - 1 : 0].access == KILN_ACCESS_OUT))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID, "operand %u: expected @in, found @%s", i,
                      use->access == KILN_ACCESS_OUT ? "out" : "inout");
}

/* The dims of what no reduction stores in: that is checked where it is stored. */
static gboolean
check_dims(const KilnCheck *check, const KilnType *space, uint32_t i, GError **error)
{
    const KilnType *type = kiln_check_type(check, i);
    if (check->instr->operands[i].access == KILN_ACCESS_IN)
        return broadcasts_to(type, space) ||
               kiln_check_throw(check, i, "dims that broadcast to the result's", error);
    return kiln_stack_is_reduced(check->instr, i) || kiln_type_same_shape(type, space) ||
           kiln_check_throw(check, i, "the dims of the other results", error);
}

static gboolean
check_operands(const KilnCheck *check, KilnType *out_space, GError **error)
{
    const KilnInstr *stack = check->instr;
    uint32_t n = stack->n_operands;
    if (n < 2 || stack->operands[0].access != KILN_ACCESS_OUT ||
        stack->operands[n - 1].access != KILN_ACCESS_IN)
        return kiln_throw(error, KILN_ERROR_INVALID, "expected @out operands, then @in operands");
    if (n > KILN_STACK_OPERANDS_MAX || !stack->n_steps || stack->n_steps > KILN_STACK_STEPS_MAX)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected at most %d operands and 1 to %d steps, found %u and %u",
                          KILN_STACK_OPERANDS_MAX, KILN_STACK_STEPS_MAX, n, stack->n_steps);
    for (uint32_t i = 0; i < n; i++) {
        if (!check_operand(stack, i, error))
            return FALSE;
    }
    if (!kiln_stack_space(stack, out_space))
        return kiln_throw(error, KILN_ERROR_INVALID, "expected @in operands that broadcast");
    for (uint32_t i = 0; i < n; i++) {
        if (!check_dims(check, out_space, i, error))
            return FALSE;
    }
    return TRUE;
}

/* --- steps --- */

static gboolean
throw_step(const KilnInstr *stack, uint32_t i, GError **error, const char *what)
{
    return kiln_throw(error, KILN_ERROR_INVALID, "step %u (%s): %s", i,
                      kiln_instr_info(stack->steps[i].kind)->name, what);
}

static gboolean
check_sources(const KilnInstr *stack, uint32_t i, GError **error)
{
    const KilnStackStep *step = &stack->steps[i];
    bool typed = step->kind == KILN_INSTR_where;
    for (uint32_t k = 0; k < step->n_sources; k++) {
        const KilnStackSource *source = &step->sources[k];
        bool scalar = source->kind == KILN_STACK_SCALAR;
        typed |= !scalar;
        if (scalar && k == 0 && step->kind == KILN_INSTR_where)
            return throw_step(stack, i, error, "expected a condition that is no number");
        if (source->kind == KILN_STACK_STEP && source->index >= i)
            return throw_step(stack, i, error, "expected results of earlier steps");
        if (source->kind == KILN_STACK_STEP && kiln_stack_reduces(stack->steps[source->index].kind))
            return throw_step(stack, i, error, "expected no result of a reduction");
        if (source->kind == KILN_STACK_OPERAND &&
            (source->index >= stack->n_operands ||
             stack->operands[source->index].access != KILN_ACCESS_IN))
            return throw_step(stack, i, error, "expected an @in operand of the stack");
    }
    return typed || throw_step(stack, i, error, "expected a source that is no number");
}

/* Only conversions and copies know what stored integers stand for. */
static gboolean
check_quantization(const KilnInstr *stack, const KilnType *space, uint32_t i, GError **error)
{
    const KilnStackStep *step = &stack->steps[i];
    KilnInstrKind kind = step->kind;
    const KilnQuant *from = kiln_stack_source_quant(stack, i, 0);
    bool takes = kind == KILN_INSTR_dequantize_linear || kind == KILN_INSTR_rescale_quantized;
    bool gives = kind == KILN_INSTR_quantize_linear || kind == KILN_INSTR_rescale_quantized;
    bool fits = takes == (from != NULL) && gives == (step->quant != NULL);
    if (kind == KILN_INSTR_copy)
        fits = kiln_quant_equal(from, step->quant);
    for (uint32_t k = 1; k < step->n_sources; k++)
        fits &= kiln_stack_source_quant(stack, i, k) == NULL;
    if (!fits)
        return throw_step(stack, i, error,
                          takes || gives ? "expected quantized types where it converts from or to"
                                         : "expected types that are not quantized");
    KilnType type = *space;
    type.dtype = step->dtype;
    type.quant = step->quant;
    return kiln_quant_check(&type, error);
}

/* The element types of an element-wise instruction: those of its op's shape function. */
static gboolean
check_types(const KilnInstr *stack, uint32_t i, GError **error)
{
    const KilnStackStep *step = &stack->steps[i];
    bool where = step->kind == KILN_INSTR_where;
    KilnDType first = kiln_stack_source_dtype(stack, i, where);
    for (uint32_t k = where + 1; k < step->n_sources; k++) {
        bool mixed = step->kind == KILN_INSTR_pow; /* the exponent's type is its own */
        if (!mixed && kiln_stack_source_dtype(stack, i, k) != first)
            return throw_step(stack, i, error, "expected sources of one element type");
    }
    if (kiln_dtype_is_address(step->dtype))
        return throw_step(stack, i, error, "expected numbers, found strings");
    if (where && kiln_stack_source_dtype(stack, i, 0) != KILN_DTYPE_bool)
        return throw_step(stack, i, error, "expected a condition of bool");
    KilnType result;
    if (!kiln_stack_infer(stack, i, &result) || result.dtype == step->dtype)
        return TRUE;
    g_autofree char *what =
        g_strdup_printf("expected a result of %s, found %s", kiln_dtype_name(result.dtype),
                        kiln_dtype_name(step->dtype));
    return throw_step(stack, i, error, what);
}

/* What a reduction of the last @n dims makes of @type; @rank says whether it keeps them. */
static void
reduce_dims(KilnType *type, int n, int rank)
{
    for (int d = type->rank - n; d < type->rank; d++)
        type->dims[d] = 1;
    if (rank < type->rank)
        type->rank -= n;
}

static gboolean
check_store(const KilnInstr *stack, const KilnType *space, uint32_t i, GError **error)
{
    const KilnStackStep *step = &stack->steps[i];
    const bool reduces = kiln_stack_reduces(step->kind);
    const int n = reduces ? kiln_stack_reduced_dims(step->kind, step->attrs, space->rank) : 0;
    if (reduces && n == 0)
        return throw_step(stack, i, error, "expected axes that are the last of the space");
    if (reduces && step->store < 0)
        return throw_step(stack, i, error, "expected an @out operand that takes its result");
    if (step->store < 0)
        return TRUE;
    uint32_t out = (uint32_t)step->store;
    if (out >= stack->n_operands || stack->operands[out].access != KILN_ACCESS_OUT)
        return throw_step(stack, i, error, "expected an @out operand to store in");
    KilnType found = stack->operands[out].buffer->type, type = found;
    type.dtype = step->dtype;
    type.quant = step->quant;
    if (reduces) {
        type.rank = space->rank;
        memcpy(type.dims, space->dims, sizeof type.dims);
        reduce_dims(&type, n, found.rank);
    }
    if (kiln_type_equal(&type, &found))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(&type);
    g_autofree char *text = kiln_type_to_string(&found);
    g_autofree char *what = g_strdup_printf("its result is %s, but %s is %s", expected,
                                            stack->operands[out].buffer->name, text);
    return throw_step(stack, i, error, what);
}

static gboolean
check_step(const KilnInstr *stack, const KilnType *space, uint32_t i, GError **error)
{
    const KilnStackStep *step = &stack->steps[i];
    uint32_t n = kiln_stack_n_sources(step->kind);
    if (!n)
        return throw_step(stack, i, error, "expected an element-wise instruction or a reduction");
    if (step->n_sources != n) {
        g_autofree char *what =
            g_strdup_printf("expected %u sources, found %u", n, step->n_sources);
        return throw_step(stack, i, error, what);
    }
    if (kiln_instr_info(step->kind)->n_attrs && !step->attrs)
        return throw_step(stack, i, error, "it has no attributes");
    return check_sources(stack, i, error) && check_types(stack, i, error) &&
           check_quantization(stack, space, i, error) && check_store(stack, space, i, error);
}

/* --- what is used --- */

/* Another operand may be the same buffer: the text form names buffers. */
static bool
is_read(const KilnInstr *stack, uint32_t operand, const bool *read)
{
    for (uint32_t i = 0; i < stack->n_operands; i++) {
        if (read[i] && stack->operands[i].access == KILN_ACCESS_IN &&
            stack->operands[i].buffer == stack->operands[operand].buffer)
            return true;
    }
    return false;
}

static gboolean
check_uses(const KilnInstr *stack, GError **error)
{
    bool read[KILN_STACK_OPERANDS_MAX] = { false }, used[KILN_STACK_STEPS_MAX] = { false };
    uint32_t stores[KILN_STACK_OPERANDS_MAX] = { 0 };
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        const KilnStackStep *step = &stack->steps[i];
        for (uint32_t k = 0; k < step->n_sources; k++) {
            if (step->sources[k].kind == KILN_STACK_OPERAND)
                read[step->sources[k].index] = true;
            else if (step->sources[k].kind == KILN_STACK_STEP)
                used[step->sources[k].index] = true;
        }
        if (step->store >= 0) {
            used[i] = true;
            stores[step->store]++;
        }
    }
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        if (!used[i])
            return throw_step(stack, i, error, "nothing reads or stores its result");
    }
    for (uint32_t i = 0; i < stack->n_operands; i++) {
        bool out = stack->operands[i].access == KILN_ACCESS_OUT;
        if (out && stores[i] != 1)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "operand %u (%s): expected one step that stores in it, found %u", i,
                              stack->operands[i].buffer->name, stores[i]);
        if (!out && !is_read(stack, i, read))
            return kiln_throw(error, KILN_ERROR_INVALID, "operand %u (%s): no step reads it", i,
                              stack->operands[i].buffer->name);
    }
    return TRUE;
}

gboolean
kiln_check_stack(KilnCheck *check, GError **error)
{
    const KilnInstr *stack = check->instr;
    KilnType space;
    if (!check_operands(check, &space, error))
        return FALSE;
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        if (!check_step(stack, &space, i, error))
            return FALSE;
    }
    return check_uses(stack, error);
}
