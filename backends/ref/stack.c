/* SPDX-License-Identifier: Apache-2.0 */
/* stack: a chain of element-wise steps on each element of operand 1, broadcast to the result.
 *
 * Every step rounds to the element type of the running value, so a stack gives the bits of its
 * steps run as instructions. The running value has the type of operand 1; a comparison or is_nan
 * makes it a bool, `cast` gives it the type of the result. A scalar is of the running value's type;
 * further operands keep their own, which only `pow` lets differ. */
#include "backends/ref/scalar.h"

typedef struct {
    KilnDType dtype;
    RefValue value;
} Running;

static RefValue
scalar_operand(KilnDType dtype, double scalar)
{
    uint64_t element = 0;
    kiln_element_store_f64(dtype, &element, 0, scalar);
    return ref_load(dtype, &element, 0);
}

static void
set_running(Running *running, KilnDType dtype, RefValue value)
{
    uint64_t element = 0;
    ref_store(dtype, &element, 0, value);
    running->dtype = dtype;
    running->value = ref_load(dtype, &element, 0);
}

static void
cast_running(Running *running, KilnDType to)
{
    uint64_t element = 0;
    kiln_ref_cast_element(running->dtype, running->value, to, &element, 0);
    running->dtype = to;
    running->value = ref_load(to, &element, 0);
}

static const char *
run_binary_step(const KilnKernelArgs *args, const KilnStackStep *step, const int64_t *index,
                Running *running)
{
    KilnDType other = running->dtype;
    RefValue operands[2] = { running->value, { 0 } }, result = { 0 };
    if (step->has_scalar) {
        operands[1] = scalar_operand(other, step->scalar);
    } else {
        uint32_t k = (uint32_t)step->operand;
        const KilnType *type = ref_type(args, k);
        other = type->dtype;
        operands[1] = ref_load(other, args->data[k],
                               ref_broadcast_offset(type, index, ref_type(args, 0)->rank));
    }
    const RefClass class_ = ref_class(running->dtype);
    const RefBinary *op = kiln_ref_binary_op(step->kind);
    const char *error = op ? kiln_ref_apply_binary(op, step->attrs, class_, operands, &result)
                           : kiln_ref_apply_pow(class_, ref_class(other), operands, &result);
    if (!error)
        set_running(running, op && op->compare ? KILN_DTYPE_bool : running->dtype, result);
    return error;
}

static const char *
run_step(const KilnKernelArgs *args, const KilnStackStep *step, const int64_t *index,
         Running *running)
{
    const RefUnary *unary = kiln_ref_unary_op(step->kind);
    if (unary) {
        RefValue result =
            kiln_ref_apply_unary(unary, step->attrs, ref_class(running->dtype), running->value);
        set_running(running, unary->test ? KILN_DTYPE_bool : running->dtype, result);
        return NULL;
    }
    if (step->kind == KILN_INSTR_cast) {
        cast_running(running, ref_type(args, 0)->dtype);
        return NULL;
    }
    return run_binary_step(args, step, index, running);
}

const char *
kiln_ref_stack(const KilnKernelArgs *args)
{
    const KilnInstr *instr = args->instr;
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        int64_t from = ref_broadcast_offset(in, index, out->rank);
        Running running = { in->dtype, ref_load(in->dtype, args->data[1], from) };
        for (uint32_t k = 0; k < instr->n_steps; k++) {
            const char *error = run_step(args, &instr->steps[k], index, &running);
            if (error)
                return error;
        }
        ref_store(out->dtype, args->data[0], i, running.value);
    }
    return NULL;
}

/* --- which stacks can be run --- */

static bool
has_class(bool f, bool s, bool u, RefClass class_)
{
    return class_ == REF_FLOAT ? f : class_ == REF_SIGNED ? s : u;
}

static bool
has_second_operand(const KilnInstr *instr, const KilnStackStep *step, KilnDType running)
{
    if (step->has_scalar)
        return true;
    if (step->operand < 2)
        return false;
    const KilnBuffer *buffer = kiln_instr_operand(instr, (uint32_t)step->operand);
    return buffer && (step->kind == KILN_INSTR_pow || buffer->type.dtype == running);
}

/* True where @step can follow a running value of *@running; moves it to the type of the result. */
static bool
step_supports(const KilnInstr *instr, const KilnStackStep *step, KilnDType *running)
{
    const RefClass class_ = ref_class(*running);
    const RefUnary *unary = kiln_ref_unary_op(step->kind);
    if (unary) {
        bool is_test = unary->test != NULL;
        if (!has_class(unary->f || is_test, unary->s, unary->u, class_))
            return false;
        *running = is_test ? KILN_DTYPE_bool : *running;
        return true;
    }
    if (step->kind == KILN_INSTR_cast) {
        *running = kiln_instr_operand(instr, 0)->type.dtype;
        return kiln_dtype_size(*running) != 0;
    }
    if (!has_second_operand(instr, step, *running))
        return false;
    if (step->kind == KILN_INSTR_pow)
        return true;
    const RefBinary *op = kiln_ref_binary_op(step->kind);
    if (!op || !(op->compare || has_class(op->f, op->s, op->u, class_)))
        return false;
    *running = op->compare ? KILN_DTYPE_bool : *running;
    return true;
}

bool
kiln_ref_stack_supports(const KilnInstr *instr)
{
    KilnDType running = kiln_instr_operand(instr, 1)->type.dtype;
    for (uint32_t k = 0; k < instr->n_steps; k++) {
        if (!step_supports(instr, &instr->steps[k], &running))
            return false;
    }
    return running == kiln_instr_operand(instr, 0)->type.dtype;
}
