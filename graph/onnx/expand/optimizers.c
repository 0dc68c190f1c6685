/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of optimizers: Adagrad, Adam and Momentum. The operands are a learning rate, the number of
 * the step, and lists: values, their gradients, and one or two running sums of gradients. The
 * results are the new values and sums.
 *
 *     g' = g + norm_coefficient x
 *
 *     Adagrad:   h' = h + g'g'
 *                x' = x - r / (1 + t decay_factor) g' / (√h' + ε)
 *
 *     Adam:      v' = αv + (1 - α)g'
 *                h' = βh + (1 - β)g'g'
 *                x' = (1 - norm_coefficient_post) (x - r' v' / (√h' + ε))
 *
 *     Momentum:  v' = αv + (t > 0 ? β : 1)g'
 *                x' = x - r v', or x - r (g' + αv') by Nesterov
 *
 * The rate of Adam is r' = t > 0 ? r √(1 - β^t) / (1 - α^t) : r. Rates are computed in f64. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

#include <string.h>

/* Operands @i and results @i of each list belong together. */
typedef struct {
    KilnOnnxSteps steps;
    uint32_t n, lists;       /* of operands; results have no gradients */
    KilnValue *rate, *count; /* scalars of f64 */
    float norm_coefficient;
} Step;

static KilnValue *
scalar(const Step *step, KilnValue *x)
{
    x = kiln_onnx_step_cast(&step->steps, x, KILN_DTYPE_f64);
    return x && x->type.rank == 0 ? x : kiln_onnx_step_reshape(&step->steps, x, NULL, 0);
}

static gboolean
begin(KilnOnnxCall *call, uint32_t lists, Step *out, GError **error)
{
    *out = (Step){ .steps = { call, error }, .lists = lists };
    if (!kiln_onnx_take_float(call, "norm_coefficient", &out->norm_coefficient, error))
        return FALSE;
    if (call->n_operands < 2 + lists || (call->n_operands - 2) % lists)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected 2 operands and %u for each value, found %u", lists,
                               call->n_operands);
    out->n = (call->n_operands - 2) / lists;
    for (uint32_t i = 0; i < call->n_operands; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    for (uint32_t i = 2; i < call->n_operands; i++) {
        const KilnType *value = &call->operands[2 + (i - 2) % out->n]->type;
        if (value->rank >= 0 && !kiln_onnx_require_shape(call, i, value->dims, value->rank, error))
            return FALSE;
    }
    out->rate = scalar(out, call->operands[0]);
    out->count = out->rate ? scalar(out, call->operands[1]) : NULL;
    return out->count != NULL;
}

/* Operand @i of list @list: values, gradients, sums. */
static KilnValue *
operand(const Step *step, uint32_t list, uint32_t i)
{
    return step->steps.call->operands[2 + list * step->n + i];
}

static gboolean
set_results(const Step *step, uint32_t i, KilnValue *const *values)
{
    for (uint32_t list = 0; list + 1 < step->lists; list++) {
        if (!kiln_onnx_set_result(step->steps.call, list * step->n + i, values[list]))
            return FALSE;
    }
    return TRUE;
}

/* The gradient of value @i and of its norm. */
static KilnValue *
gradient(const Step *step, uint32_t i)
{
    const KilnOnnxSteps *s = &step->steps;
    KilnValue *g = operand(step, 1, i);
    if (step->norm_coefficient == 0)
        return g;
    return kiln_onnx_step_add(
        s, g, kiln_onnx_step_mul_number(s, operand(step, 0, i), (double)step->norm_coefficient));
}

/* @decay of @sum, and @share of @x. */
static KilnValue *
mixed(const KilnOnnxSteps *s, KilnValue *sum, double decay, KilnValue *x, double share)
{
    return kiln_onnx_step_add(s, kiln_onnx_step_mul_number(s, sum, decay),
                              kiln_onnx_step_mul_number(s, x, share));
}

/* √@x + @epsilon */
static KilnValue *
root(const KilnOnnxSteps *s, KilnValue *x, float epsilon)
{
    return kiln_onnx_step_add_number(s, kiln_onnx_step_sqrt(s, x), (double)epsilon);
}

/* @x - @rate · @direction. */
static KilnValue *
moved(const KilnOnnxSteps *s, KilnValue *x, KilnValue *rate, KilnValue *direction)
{
    rate = kiln_onnx_step_cast(s, rate, x->type.dtype);
    return kiln_onnx_step_sub(s, x, kiln_onnx_step_mul(s, direction, rate));
}

/* @yes from step 1 on, and @no in step 0. */
static KilnValue *
unless_first(const Step *step, KilnValue *yes, KilnValue *no)
{
    const KilnOnnxSteps *s = &step->steps;
    return kiln_onnx_step3(s, KILN_OP_where, NULL,
                           kiln_onnx_step_number(s, KILN_OP_greater, step->count, 0), yes, no);
}

gboolean
kiln_onnx_convert_adagrad(KilnOnnxCall *call, GError **error)
{
    Step step;
    float decay = 0, epsilon = 1e-6f;
    if (!begin(call, 3, &step, error) ||
        !kiln_onnx_take_float(call, "decay_factor", &decay, error) ||
        !kiln_onnx_take_float(call, "epsilon", &epsilon, error))
        return FALSE;
    const KilnOnnxSteps *s = &step.steps;
    KilnValue *slower =
        kiln_onnx_step_add_number(s, kiln_onnx_step_mul_number(s, step.count, (double)decay), 1);
    KilnValue *rate = kiln_onnx_step_div(s, step.rate, slower);
    for (uint32_t i = 0; i < step.n; i++) {
        KilnValue *g = gradient(&step, i);
        KilnValue *h = kiln_onnx_step_add(s, operand(&step, 2, i), kiln_onnx_step_mul(s, g, g));
        KilnValue *direction = kiln_onnx_step_div(s, g, root(s, h, epsilon));
        KilnValue *x = moved(s, operand(&step, 0, i), rate, direction);
        if (!set_results(&step, i, (KilnValue *[]){ x, h }))
            return FALSE;
    }
    return TRUE;
}

/* 1 - @base to the power of the step's number. */
static KilnValue *
one_without_power(const Step *step, double base)
{
    const KilnOnnxSteps *s = &step->steps;
    KilnValue *number = kiln_onnx_scalar(s->call, "base", KILN_DTYPE_f64, base);
    KilnValue *power = kiln_onnx_step_pow(s, number, step->count);
    return kiln_onnx_step_sub(s, kiln_onnx_scalar(s->call, "one", KILN_DTYPE_f64, 1), power);
}

gboolean
kiln_onnx_convert_adam(KilnOnnxCall *call, GError **error)
{
    Step step;
    float alpha = 0.9f, beta = 0.999f, epsilon = 1e-6f, post = 0;
    if (!begin(call, 4, &step, error) || !kiln_onnx_take_float(call, "alpha", &alpha, error) ||
        !kiln_onnx_take_float(call, "beta", &beta, error) ||
        !kiln_onnx_take_float(call, "epsilon", &epsilon, error) ||
        !kiln_onnx_take_float(call, "norm_coefficient_post", &post, error))
        return FALSE;
    const KilnOnnxSteps *s = &step.steps;
    const double a = (double)alpha, b = (double)beta;
    KilnValue *faster = kiln_onnx_step_div(s, kiln_onnx_step_sqrt(s, one_without_power(&step, b)),
                                           one_without_power(&step, a));
    KilnValue *rate = unless_first(&step, kiln_onnx_step_mul(s, step.rate, faster), step.rate);
    for (uint32_t i = 0; i < step.n; i++) {
        KilnValue *g = gradient(&step, i);
        KilnValue *v = mixed(s, operand(&step, 2, i), a, g, 1 - a);
        KilnValue *h = mixed(s, operand(&step, 3, i), b, kiln_onnx_step_mul(s, g, g), 1 - b);
        KilnValue *direction = kiln_onnx_step_div(s, v, root(s, h, epsilon));
        KilnValue *x = moved(s, operand(&step, 0, i), rate, direction);
        if (post != 0)
            x = kiln_onnx_step_mul_number(s, x, 1 - (double)post);
        if (!set_results(&step, i, (KilnValue *[]){ x, v, h }))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_onnx_convert_momentum(KilnOnnxCall *call, GError **error)
{
    Step step;
    float alpha = 0, beta = 0;
    const char *mode = "";
    if (!begin(call, 3, &step, error) || !kiln_onnx_take_float(call, "alpha", &alpha, error) ||
        !kiln_onnx_take_float(call, "beta", &beta, error) ||
        !kiln_onnx_take_text(call, "mode", &mode, error))
        return FALSE;
    if (strcmp(mode, "standard") != 0 && strcmp(mode, "nesterov") != 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "mode: expected standard or nesterov, found %s", mode);
    const KilnOnnxSteps *s = &step.steps;
    const double a = (double)alpha;
    KilnValue *share =
        unless_first(&step, kiln_onnx_scalar(call, "beta", KILN_DTYPE_f64, (double)beta),
                     kiln_onnx_scalar(call, "one", KILN_DTYPE_f64, 1));
    for (uint32_t i = 0; i < step.n; i++) {
        KilnValue *g = gradient(&step, i), *old = operand(&step, 2, i);
        KilnValue *part = kiln_onnx_step_mul(s, g, kiln_onnx_step_cast(s, share, old->type.dtype));
        KilnValue *v = kiln_onnx_step_add(s, kiln_onnx_step_mul_number(s, old, a), part);
        KilnValue *direction = v;
        if (mode[0] == 'n')
            direction = kiln_onnx_step_add(s, g, kiln_onnx_step_mul_number(s, v, a));
        KilnValue *x = moved(s, operand(&step, 0, i), step.rate, direction);
        if (!set_results(&step, i, (KilnValue *[]){ x, v }))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_onnx_convert_gradient(KilnOnnxCall *call, GError **error)
{
    return kiln_onnx_unsupported(call, error, "Kiln does not differentiate graphs");
}
