/* SPDX-License-Identifier: Apache-2.0 */
/* stack: all its steps on each element of the iteration space, one element after the other.
 *
 * Every step rounds to its element type, so a stack gives the bits of its steps run as
 * instructions; what moves elements moves their bits. All steps are run on an element before any
 * result of it is stored. Groups that a reduction folds lie one behind the other: each is folded
 * while its elements go by. */
#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/integer/quantize.h"
#include "backends/ref/kernel.h"
#include "backends/ref/reduce/reduce.h"
#include "ir/kernel.h"
#include "ir/stack.h"

typedef struct {
    const KilnKernelArgs *args;
    int64_t index[KILN_MAX_RANK]; /* of the element */
    KilnType space;
    uint64_t results[KILN_STACK_STEPS_MAX]; /* of its steps, as they are stored */
    int64_t groups[KILN_STACK_STEPS_MAX];   /* elements of a group of reductions, else 0 */
    double folded[KILN_STACK_STEPS_MAX];    /* of the group so far */
} Element;

/* The bits of source @k of step @i. */
static uint64_t
load_bits(const Element *at, uint32_t i, uint32_t k)
{
    const KilnInstr *stack = at->args->instr;
    const KilnStackSource *source = &stack->steps[i].sources[k];
    uint64_t bits = 0;
    if (source->kind == KILN_STACK_STEP)
        return at->results[source->index];
    KilnDType dtype = kiln_stack_source_dtype(stack, i, k);
    if (source->kind == KILN_STACK_SCALAR) {
        kiln_element_store_f64(dtype, &bits, 0, source->scalar);
        return bits;
    }
    const KilnType *type = ref_type(at->args, source->index);
    int64_t from = ref_broadcast_offset(type, at->index, at->space.rank);
    ref_copy_element(&bits, 0, at->args->data[source->index], from, kiln_dtype_size(dtype));
    return bits;
}

static RefValue
load(const Element *at, uint32_t i, uint32_t k)
{
    uint64_t bits = load_bits(at, i, k);
    return ref_load(kiln_stack_source_dtype(at->args->instr, i, k), &bits, 0);
}

/* The index of the element's scale and zero point. */
static int64_t
quant_index(const Element *at, const KilnQuant *quant)
{
    return quant->axis < 0 ? 0 : at->index[quant->axis];
}

static void
run_conversion(Element *at, uint32_t i, uint64_t *result)
{
    const KilnInstr *stack = at->args->instr;
    const KilnStackStep *step = &stack->steps[i];
    const KilnDType from = kiln_stack_source_dtype(stack, i, 0);
    const KilnQuant *in = kiln_stack_source_quant(stack, i, 0);
    const RefValue x = load(at, i, 0);
    KilnRefQuant a = { 0 }, b = { 0 };
    if (in)
        a = (KilnRefQuant){ in->scales[quant_index(at, in)], in->zero_points[quant_index(at, in)] };
    if (step->quant)
        b = (KilnRefQuant){ step->quant->scales[quant_index(at, step->quant)],
                            step->quant->zero_points[quant_index(at, step->quant)] };
    if (step->kind == KILN_INSTR_cast && from == step->dtype)
        *result = load_bits(at, i, 0);
    else if (step->kind == KILN_INSTR_cast)
        kiln_ref_cast_element(from, x, step->dtype, result, 0);
    else if (step->kind == KILN_INSTR_quantize_linear)
        kiln_ref_quantize_element((float)x.f, b, step->dtype, result, 0);
    else if (step->kind == KILN_INSTR_dequantize_linear)
        kiln_ref_dequantize_element(x.s, a, step->dtype, result, 0);
    else
        kiln_ref_rescale_element(x.s, a, b, step->dtype, result, 0);
}

/* min(max(x, low), high), as the instruction does it. */
static void
run_clip(Element *at, uint32_t i, uint64_t *result)
{
    const KilnDType dtype = at->args->instr->steps[i].dtype;
    RefValue x = load(at, i, 0);
    for (uint32_t k = 1; k < 3; k++) {
        const KilnInstrKind kind = k == 1 ? KILN_INSTR_max : KILN_INSTR_min;
        const RefValue operands[2] = { x, load(at, i, k) };
        kiln_ref_apply_binary(kiln_ref_binary_op(kind), NULL, ref_class(dtype), operands, &x);
    }
    ref_store(dtype, result, 0, x);
}

static const char *
run_arithmetic(Element *at, uint32_t i, uint64_t *result)
{
    const KilnInstr *stack = at->args->instr;
    const KilnStackStep *step = &stack->steps[i];
    const RefClass class_ = ref_class(kiln_stack_source_dtype(stack, i, 0));
    const RefUnary *unary = kiln_ref_unary_op(step->kind);
    RefValue value = { 0 };
    const char *error = NULL;
    if (unary) {
        value = kiln_ref_apply_unary(unary, step->attrs, class_, load(at, i, 0));
    } else {
        const RefValue operands[2] = { load(at, i, 0), load(at, i, 1) };
        const RefBinary *op = kiln_ref_binary_op(step->kind);
        const RefClass exponent = ref_class(kiln_stack_source_dtype(stack, i, 1));
        error = op ? kiln_ref_apply_binary(op, step->attrs, class_, operands, &value)
                   : kiln_ref_apply_pow(class_, exponent, operands, &value);
    }
    ref_store(step->dtype, result, 0, value);
    return error;
}

static const char *
run_step(Element *at, uint32_t i)
{
    uint64_t *result = &at->results[i];
    *result = 0;
    switch (at->args->instr->steps[i].kind) {
    case KILN_INSTR_copy:
        *result = load_bits(at, i, 0);
        return NULL;
    case KILN_INSTR_where:
        *result = load_bits(at, i, load(at, i, 0).u ? 1 : 2);
        return NULL;
    case KILN_INSTR_clip:
        run_clip(at, i, result);
        return NULL;
    case KILN_INSTR_cast:
    case KILN_INSTR_quantize_linear:
    case KILN_INSTR_dequantize_linear:
    case KILN_INSTR_rescale_quantized:
        run_conversion(at, i, result);
        return NULL;
    default:
        return run_arithmetic(at, i, result);
    }
}

/* --- reductions --- */

static void
start_folds(Element *at)
{
    const KilnInstr *stack = at->args->instr;
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        const KilnStackStep *step = &stack->steps[i];
        const int rank = at->space.rank;
        at->groups[i] = 0;
        if (!kiln_stack_reduces(step->kind))
            continue;
        at->groups[i] = ref_count(
            at->space.dims, rank - kiln_stack_reduced_dims(step->kind, step->attrs, rank), rank);
        at->folded[i] = kiln_ref_fold_start(step->kind);
    }
}

/* Stores group @group of step @i, and starts the next. */
static void
finish_group(Element *at, uint32_t i, int64_t group)
{
    const KilnStackStep *step = &at->args->instr->steps[i];
    ref_store_float(step->dtype, at->args->data[step->store], group,
                    kiln_ref_fold_finish(step->kind, at->folded[i], at->groups[i]));
    at->folded[i] = kiln_ref_fold_start(step->kind);
}

/* Groups without elements. */
static void
finish_empty(Element *at)
{
    const KilnInstr *stack = at->args->instr;
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        if (!kiln_stack_reduces(stack->steps[i].kind))
            continue;
        const int64_t n = ref_elements(ref_type(at->args, (uint32_t)stack->steps[i].store));
        for (int64_t group = 0; group < n; group++)
            finish_group(at, i, group);
    }
}

static void
store_results(Element *at, int64_t e)
{
    const KilnInstr *stack = at->args->instr;
    for (uint32_t i = 0; i < stack->n_steps; i++) {
        const KilnStackStep *step = &stack->steps[i];
        if (at->groups[i]) {
            at->folded[i] = kiln_ref_fold(step->kind, at->folded[i], load(at, i, 0).f);
            if ((e + 1) % at->groups[i] == 0)
                finish_group(at, i, e / at->groups[i]);
        } else if (step->store >= 0) {
            ref_copy_element(at->args->data[step->store], e, &at->results[i], 0,
                             kiln_dtype_size(step->dtype));
        }
    }
}

const char *
kiln_ref_stack(const KilnKernelArgs *args)
{
    const KilnInstr *stack = args->instr;
    Element at = { .args = args };
    kiln_stack_space(stack, &at.space);
    const int64_t n = ref_elements(&at.space);
    start_folds(&at);
    if (n == 0)
        finish_empty(&at);
    for (int64_t e = 0; e < n; e++, ref_next(at.index, at.space.dims, at.space.rank)) {
        for (uint32_t i = 0; i < stack->n_steps; i++) {
            const char *error = at.groups[i] ? NULL : run_step(&at, i);
            if (error)
                return error;
        }
        store_results(&at, e);
    }
    return NULL;
}

const char *
kiln_ref_stack_quantized(const KilnKernelArgs *args)
{
    return kiln_ref_stack(args);
}

/* --- which stacks can be run --- */

static bool
has_class(bool f, bool s, bool u, RefClass class_)
{
    return class_ == REF_FLOAT ? f : class_ == REF_SIGNED ? s : u;
}

static bool
step_supports(const KilnInstr *stack, uint32_t i)
{
    const KilnStackStep *step = &stack->steps[i];
    const KilnDType from = kiln_stack_source_dtype(stack, i, 0);
    const RefClass class_ = ref_class(from);
    const RefUnary *unary = kiln_ref_unary_op(step->kind);
    const RefBinary *op = kiln_ref_binary_op(step->kind);
    if (!kiln_dtype_size(step->dtype) || !kiln_dtype_size(from))
        return false;
    if (kiln_stack_reduces(step->kind))
        return class_ == REF_FLOAT;
    if (unary)
        return has_class(unary->f || unary->test, unary->s, unary->u, class_);
    if (op)
        return op->compare || has_class(op->f, op->s, op->u, class_);
    switch (step->kind) {
    case KILN_INSTR_quantize_linear:
        return class_ == REF_FLOAT;
    case KILN_INSTR_dequantize_linear:
        return kiln_dtype_is_float(step->dtype);
    case KILN_INSTR_clip:
        return from != KILN_DTYPE_bool;
    default:
        return true; /* pow, where, and what converts or moves */
    }
}

/* The verifier saw to the rest. */
bool
kiln_ref_stack_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_steps; i++) {
        if (!step_supports(instr, i))
            return false;
    }
    return true;
}
