/* SPDX-License-Identifier: Apache-2.0 */
/* LinearClassifier and LinearRegressor of ai.onnx.ml: x · coefficientsᵀ + intercepts, in f32. */
#include "graph/attr.h"
#include "graph/graph.h"
#include "graph/kiln-types.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/ml.h"
#include "graph/onnx/steps.h"

typedef struct {
    KilnOnnxSteps s;
    KilnFloats coefficients, intercepts;
    KilnOnnxMlTransform transform;
} Linear;

static gboolean
take_attrs(KilnOnnxCall *call, Linear *l, GError **error)
{
    return kiln_onnx_take_floats(call, "coefficients", &l->coefficients, error) &&
           kiln_onnx_take_floats(call, "intercepts", &l->intercepts, error) &&
           kiln_onnx_ml_take_transform(call, &l->transform, error);
}

/* [N, @targets]: coefficients of a target lie side by side. */
static KilnValue *
scores_of(const Linear *l, int64_t targets)
{
    static const int64_t swap[] = { 1, 0 };
    KilnValue *x = kiln_onnx_ml_rows(&l->s, KILN_DTYPE_f32);
    if (!x)
        return NULL;
    const int64_t features = x->type.dims[1] < 0 ? l->coefficients.n / targets : x->type.dims[1];
    if (targets > l->coefficients.n || features * targets != l->coefficients.n) {
        kiln_onnx_throw(l->s.call, KILN_ERROR_INVALID, l->s.error,
                        "attribute 'coefficients': expected a number for each of %" G_GINT64_FORMAT
                        " targets and %" G_GINT64_FORMAT " features, found %u",
                        targets, features, l->coefficients.n);
        return NULL;
    }
    KilnValue *w = kiln_onnx_ml_matrix(&l->s, "coefficients", l->coefficients.v, targets, features);
    KilnValue *y = kiln_onnx_step_matmul(&l->s, x, kiln_onnx_step_transpose(&l->s, w, swap, 2));
    if (!y || !l->intercepts.n)
        return y;
    if (!kiln_onnx_ml_check_length(l->s.call, "intercepts", l->intercepts.n, targets, l->s.error))
        return NULL;
    return kiln_onnx_step_add(
        &l->s, y, kiln_onnx_ml_floats(&l->s, "intercepts", KILN_DTYPE_f32, l->intercepts));
}

gboolean
kiln_onnx_convert_linear_regressor(KilnOnnxCall *call, GError **error)
{
    Linear l = { .s = { call, error } };
    int64_t targets = 1;
    if (!kiln_onnx_take_int(call, "targets", &targets, error) || !take_attrs(call, &l, error))
        return FALSE;
    if (targets < 1 || targets > G_MAXINT32)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute 'targets': expected 1 to 2147483647, found "
                               "%" G_GINT64_FORMAT,
                               targets);
    return kiln_onnx_set_result(call, 0,
                                kiln_onnx_ml_transform(&l.s, l.transform, scores_of(&l, targets)));
}

/* Two classes with one score s: the second wins where s is above 0. The first gets 1 - s, or what a
 * transform makes of -s. */
static KilnValue *
both(const Linear *l, KilnValue *score)
{
    KilnValue *other = kiln_onnx_step_mul_number(&l->s, score, -1);
    if (l->transform == KILN_ONNX_ML_NONE)
        other = kiln_onnx_step_add_number(&l->s, other, 1);
    return kiln_onnx_ml_transform(&l->s, l->transform,
                                  kiln_onnx_step_concat(&l->s, other, score, 1));
}

gboolean
kiln_onnx_convert_linear_classifier(KilnOnnxCall *call, GError **error)
{
    Linear l = { .s = { call, error } };
    KilnOnnxMlLabels labels;
    int64_t multi_class = 0; /* how the model was trained */
    if (!kiln_onnx_take_int(call, "multi_class", &multi_class, error) ||
        !kiln_onnx_ml_take_labels(call, "classlabels_ints", &labels, error) ||
        !take_attrs(call, &l, error))
        return FALSE;
    const bool shared = labels.n == 2 && l.intercepts.n == 1;
    KilnValue *scores = scores_of(&l, shared ? 1 : labels.n);
    KilnValue *best =
        shared ? kiln_onnx_ml_above(&l.s, scores, 0) : kiln_onnx_ml_largest(&l.s, scores);
    scores = shared ? both(&l, scores) : kiln_onnx_ml_transform(&l.s, l.transform, scores);
    return kiln_onnx_set_result(call, 0, kiln_onnx_ml_label(&l.s, labels, best)) &&
           kiln_onnx_set_result(call, 1, scores);
}
