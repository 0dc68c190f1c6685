/* SPDX-License-Identifier: Apache-2.0 */
/* post_transform: what becomes of the scores of a row. */
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/ml.h"
#include "graph/op/activation.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"

#include <string.h>

gboolean
kiln_onnx_ml_take_transform(KilnOnnxCall *call, KilnOnnxMlTransform *out, GError **error)
{
    static const char *const names[KILN_ONNX_ML_N_TRANSFORMS] = {
        [KILN_ONNX_ML_NONE] = "NONE",         [KILN_ONNX_ML_SOFTMAX] = "SOFTMAX",
        [KILN_ONNX_ML_LOGISTIC] = "LOGISTIC", [KILN_ONNX_ML_SOFTMAX_ZERO] = "SOFTMAX_ZERO",
        [KILN_ONNX_ML_PROBIT] = "PROBIT",
    };
    const char *text = "NONE";
    if (!kiln_onnx_take_text(call, "post_transform", &text, error))
        return FALSE;
    for (int i = 0; i < KILN_ONNX_ML_N_TRANSFORMS; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (KilnOnnxMlTransform)i;
            return TRUE;
        }
    }
    return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "attribute 'post_transform': expected NONE, SOFTMAX, LOGISTIC, "
                           "SOFTMAX_ZERO or PROBIT, found \"%s\"",
                           text);
}

/* A softmax of the scores that are not 0. Those of at most 1e-7 count as 0, and get x e^-max. */
static KilnValue *
softmax_zero(const KilnOnnxSteps *s, KilnValue *x)
{
    KilnValue *largest = kiln_onnx_ml_reduce(s, KILN_OP_reduce_max, x);
    KilnValue *some = kiln_onnx_step_number(
        s, KILN_OP_greater, kiln_onnx_step1(s, KILN_OP_abs, NULL, x), (double)1e-7f);
    KilnValue *e = kiln_onnx_step1(s, KILN_OP_exp, NULL, kiln_onnx_step_sub(s, x, largest));
    KilnValue *none = kiln_onnx_step_mul(
        s, x,
        kiln_onnx_step1(s, KILN_OP_exp, NULL, kiln_onnx_step1(s, KILN_OP_neg, NULL, largest)));
    if (!e || !some)
        return NULL;
    KilnValue *counted = kiln_onnx_step3(s, KILN_OP_where, NULL, some, e,
                                         kiln_onnx_scalar(s->call, "zero", x->type.dtype, 0));
    return kiln_onnx_step_div(s, kiln_onnx_step3(s, KILN_OP_where, NULL, some, e, none),
                              kiln_onnx_ml_reduce(s, KILN_OP_reduce_sum, counted));
}

/* √2 erf⁻¹(2x - 1), with Winitzki's approximation of erf⁻¹: with a = 0.147, l = ln(1 - y²) and
 * v = 2 / (π a) + l / 2, it is sign(y) √(√(v² - l / a) - v). */
static KilnValue *
probit(const KilnOnnxSteps *s, KilnValue *x)
{
    const double a = 0.147;
    KilnValue *y = kiln_onnx_step_sub_number(s, kiln_onnx_step_mul_number(s, x, 2), 1);
    KilnValue *rest = kiln_onnx_step_mul(s, kiln_onnx_step_sub_number(s, y, 1),
                                         kiln_onnx_step_add_number(s, y, 1));
    KilnValue *l =
        kiln_onnx_step1(s, KILN_OP_log, NULL, kiln_onnx_step1(s, KILN_OP_neg, NULL, rest));
    KilnValue *v = kiln_onnx_step_add_number(s, kiln_onnx_step_mul_number(s, l, 0.5),
                                             2 / (3.14159265358979323846 * a));
    KilnValue *root =
        kiln_onnx_step_sub(s, kiln_onnx_step_mul(s, v, v), kiln_onnx_step_mul_number(s, l, 1 / a));
    root = kiln_onnx_step_sub(s, kiln_onnx_step1(s, KILN_OP_sqrt, NULL, root), v);
    root = kiln_onnx_step_mul(s, kiln_onnx_step1(s, KILN_OP_sign, NULL, y),
                              kiln_onnx_step1(s, KILN_OP_sqrt, NULL, root));
    return kiln_onnx_step_mul_number(s, root, 1.41421356237309504880);
}

KilnValue *
kiln_onnx_ml_tanh(const KilnOnnxSteps *s, KilnValue *x)
{
    return kiln_onnx_step1(s, KILN_OP_tanh, NULL, x);
}

KilnValue *
kiln_onnx_ml_transform(const KilnOnnxSteps *s, KilnOnnxMlTransform transform, KilnValue *scores)
{
    KilnAttrs_softmax last = { .axis = -1 };
    switch (transform) {
    case KILN_ONNX_ML_SOFTMAX:
        return kiln_onnx_step1(s, KILN_OP_softmax, &last, scores);
    case KILN_ONNX_ML_LOGISTIC:
        return kiln_onnx_step1(s, KILN_OP_sigmoid, NULL, scores);
    case KILN_ONNX_ML_SOFTMAX_ZERO:
        return scores ? softmax_zero(s, scores) : NULL;
    case KILN_ONNX_ML_PROBIT:
        return scores ? probit(s, scores) : NULL;
    case KILN_ONNX_ML_NONE:
    case KILN_ONNX_ML_N_TRANSFORMS:
        break;
    }
    return scores;
}
