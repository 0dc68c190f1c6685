/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of ai.onnx.ml that prepare features: chains of a few operators each. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/ml.h"
#include "graph/onnx/steps.h"
#include "graph/op/bounds.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/reduce.h"
#include "graph/op/structure.h"

#include <math.h>
#include <string.h>

/* (x [..., F], indices of features): a vector becomes one row. */
gboolean
kiln_onnx_convert_array_feature_extractor(KilnOnnxCall *call, GError **error)
{
    static const int64_t first[] = { 0 };
    static const KilnOnnxExtent all[] = { KILN_ONNX_NUMBER(-1) };
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnValue *indices = x ? kiln_onnx_need(call, 1, error) : NULL;
    if (!indices || !kiln_onnx_require_rank(call, 0, 1, KILN_MAX_RANK, error))
        return FALSE;
    KilnValue *y = kiln_onnx_step_gather(&s, x, kiln_onnx_step_reshape(&s, indices, all, 1), -1);
    if (x->type.rank == 1)
        y = kiln_onnx_step_unsqueeze(&s, y, first, 1);
    return kiln_onnx_set_result(call, 0, y);
}

gboolean
kiln_onnx_convert_binarizer(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    float threshold = 0;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_take_float(call, "threshold", &threshold, error))
        return FALSE;
    KilnValue *above = kiln_onnx_step_number(
        &s, KILN_OP_greater, x,
        kiln_dtype_is_float(x->type.dtype) ? (double)threshold : floor((double)threshold));
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_cast(&s, above, x->type.dtype));
}

/* Operand @i as rows of f32 with the stated number of columns. */
static KilnValue *
columns_of(const KilnOnnxSteps *s, uint32_t i, KilnInts columns)
{
    KilnValue *x = kiln_onnx_need(s->call, i, s->error);
    if (!x || !kiln_onnx_require_rank(s->call, i, 1, KILN_MAX_RANK, s->error))
        return NULL;
    const KilnOnnxExtent one[] = { KILN_ONNX_NUMBER(1), KILN_ONNX_NUMBER(-1) };
    const KilnOnnxExtent rows[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_NUMBER(-1) };
    if (x->type.rank != 2)
        x = kiln_onnx_step_reshape(s, x, x->type.rank == 1 ? one : rows, 2);
    if (x && i < columns.n && x->type.dims[1] >= 0 && x->type.dims[1] != columns.v[i]) {
        kiln_onnx_throw(s->call, KILN_ERROR_SHAPE, s->error,
                        "operand %u: expected %" G_GINT64_FORMAT
                        " columns, as 'inputdimensions' says, found %" G_GINT64_FORMAT,
                        i, columns.v[i], x->type.dims[1]);
        return NULL;
    }
    return kiln_onnx_step_cast(s, x, KILN_DTYPE_f32);
}

gboolean
kiln_onnx_convert_feature_vectorizer(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnInts columns = { 0 };
    bool there;
    if (!kiln_onnx_take_ints(call, "inputdimensions", &columns, &there, error) ||
        (there &&
         !kiln_onnx_ml_check_length(call, "inputdimensions", columns.n, call->n_operands, error)))
        return FALSE;
    KilnValue *y = columns_of(&s, 0, columns);
    for (uint32_t i = 1; y && i < call->n_operands; i++) {
        KilnValue *part = columns_of(&s, i, columns);
        y = part ? kiln_onnx_step_concat(&s, y, part, 1) : NULL;
    }
    if (y && y == kiln_onnx_operand(call, 0))
        y = kiln_onnx_step1(&s, KILN_OP_identity, NULL, y);
    return kiln_onnx_set_result(call, 0, y);
}

/* Checks a list with one number for all features, or one for each. */
static gboolean
check_features(const KilnOnnxCall *call, const char *name, uint32_t n, const KilnValue *x,
               GError **error)
{
    const int64_t features = x->type.rank > 0 ? x->type.dims[x->type.rank - 1] : 1;
    if (n == 1 || (n && (features < 0 || n == features)))
        return TRUE;
    return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "attribute '%s': expected one number, or one for each of "
                           "%" G_GINT64_FORMAT " features, found %u",
                           name, features, n);
}

gboolean
kiln_onnx_convert_imputer(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnFloats floats = { 0 };
    KilnInts ints = { 0 };
    float old = 0;
    int64_t old_int = 0;
    bool there;
    KilnValue *x = kiln_onnx_need(call, 0, error), *same, *new;
    if (!x || !kiln_onnx_take_floats(call, "imputed_value_floats", &floats, error) ||
        !kiln_onnx_take_ints(call, "imputed_value_int64s", &ints, &there, error) ||
        !kiln_onnx_take_float(call, "replaced_value_float", &old, error) ||
        !kiln_onnx_take_int(call, "replaced_value_int64", &old_int, error))
        return FALSE;
    const KilnDType dtype = x->type.dtype;
    if (kiln_dtype_is_float(dtype)) {
        if (!check_features(call, "imputed_value_floats", floats.n, x, error))
            return FALSE;
        same = isnan(old) ? kiln_onnx_step1(&s, KILN_OP_is_nan, NULL, x)
                          : kiln_onnx_step_number(&s, KILN_OP_equal, x, (double)old);
        new = kiln_onnx_ml_floats(&s, "imputed", dtype, floats);
    } else {
        if (!check_features(call, "imputed_value_int64s", ints.n, x, error))
            return FALSE;
        same = kiln_onnx_step2(
            &s, KILN_OP_equal, NULL, x,
            kiln_onnx_step_cast(&s, kiln_onnx_ints(call, "replaced", &old_int, 1), dtype));
        new = kiln_onnx_step_cast(&s, kiln_onnx_ints(call, "imputed", ints.v, ints.n), dtype);
    }
    return kiln_onnx_set_result(call, 0, kiln_onnx_step3(&s, KILN_OP_where, NULL, same, new, x));
}

/* Rows by what @norm says, in f32. Rows where that is 0 stay as they are. */
gboolean
kiln_onnx_convert_normalizer(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    const char *norm = "MAX";
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_take_text(call, "norm", &norm, error) ||
        !kiln_onnx_require_rank(call, 0, 1, 2, error))
        return FALSE;
    const bool max = strcmp(norm, "MAX") == 0, l2 = strcmp(norm, "L2") == 0;
    if (!max && !l2 && strcmp(norm, "L1") != 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute 'norm': expected MAX, L1 or L2, found \"%s\"", norm);
    x = kiln_onnx_step_cast(&s, x, KILN_DTYPE_f32);
    KilnValue *by = x ? kiln_onnx_ml_reduce(&s,
                                            max  ? KILN_OP_reduce_max
                                            : l2 ? KILN_OP_reduce_l2
                                                 : KILN_OP_reduce_l1,
                                            x)
                      : NULL;
    if (!by)
        return FALSE;
    by = kiln_onnx_step3(&s, KILN_OP_where, NULL, kiln_onnx_step_number(&s, KILN_OP_equal, by, 0),
                         kiln_onnx_scalar(call, "one", KILN_DTYPE_f32, 1), by);
    return kiln_onnx_set_result(call, 0, kiln_onnx_step_div(&s, x, by));
}

gboolean
kiln_onnx_convert_scaler(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnFloats scale = { 0 }, offset = { 0 };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_take_floats(call, "scale", &scale, error) ||
        !kiln_onnx_take_floats(call, "offset", &offset, error) ||
        !check_features(call, "scale", scale.n, x, error) ||
        !check_features(call, "offset", offset.n, x, error))
        return FALSE;
    KilnValue *y = kiln_onnx_step_sub(&s, kiln_onnx_step_cast(&s, x, KILN_DTYPE_f32),
                                      kiln_onnx_ml_floats(&s, "offset", KILN_DTYPE_f32, offset));
    y = kiln_onnx_step_mul(&s, y, kiln_onnx_ml_floats(&s, "scale", KILN_DTYPE_f32, scale));
    return kiln_onnx_set_result(call, 0, y);
}
