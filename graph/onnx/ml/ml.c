/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/ml/ml.h"

#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/op/gather.h"
#include "graph/op/logic.h"
#include "graph/op/reduce.h"
#include "graph/tensor.h"

KilnValue *
kiln_onnx_ml_rows(const KilnOnnxSteps *s, KilnDType dtype)
{
    static const int64_t first[] = { 0 };
    KilnValue *x = kiln_onnx_need(s->call, 0, s->error);
    if (!x || !kiln_onnx_require_rank(s->call, 0, 1, 2, s->error))
        return NULL;
    if (x->type.rank == 1)
        x = kiln_onnx_step_unsqueeze(s, x, first, 1);
    return kiln_onnx_step_cast(s, x, dtype);
}

/* --- constants and attributes --- */

static KilnValue *
tensor_of(const KilnOnnxSteps *s, const char *suffix, const KilnType *type, const void *data)
{
    KilnTensor *tensor = kiln_tensor_new_copy(type, data, s->error);
    return tensor ? kiln_onnx_helper(s->call, suffix, tensor) : NULL;
}

KilnValue *
kiln_onnx_ml_floats(const KilnOnnxSteps *s, const char *suffix, KilnDType dtype, KilnFloats list)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ list.n });
    return kiln_onnx_step_cast(s, tensor_of(s, suffix, &type, list.v), dtype);
}

KilnValue *
kiln_onnx_ml_doubles(const KilnOnnxSteps *s, const char *suffix, KilnDType dtype,
                     const GArray *list)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_f64, 1, (int64_t[]){ list->len });
    return kiln_onnx_step_cast(s, tensor_of(s, suffix, &type, list->data), dtype);
}

KilnValue *
kiln_onnx_ml_matrix(const KilnOnnxSteps *s, const char *suffix, const float *data, int64_t rows,
                    int64_t columns)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ rows, columns });
    return tensor_of(s, suffix, &type, data);
}

gboolean
kiln_onnx_ml_check_length(const KilnOnnxCall *call, const char *name, size_t found,
                          int64_t expected, GError **error)
{
    if (found == (size_t)expected)
        return TRUE;
    return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "attribute '%s': expected %" G_GINT64_FORMAT " elements, found %zu",
                           name, expected, found);
}

/* --- labels --- */

gboolean
kiln_onnx_ml_take_labels(KilnOnnxCall *call, const char *ints, KilnInts *out, GError **error)
{
    bool there = false;
    const KilnOnnxAttr *texts = kiln_onnx_take(call, "classlabels_strings");
    *out = (KilnInts){ 0 };
    if (!kiln_onnx_take_ints(call, ints, out, &there, error))
        return FALSE;
    if (texts && texts->proto->n_strings && out->n)
        return kiln_onnx_throw(
            call, KILN_ERROR_INVALID, error,
            "attributes '%s' and 'classlabels_strings': expected one of them, found "
            "both",
            ints);
    if (texts && texts->proto->n_strings)
        return kiln_onnx_unsupported(call, error, "labels that are strings");
    return out->n > 0 || kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                         "attribute '%s': expected labels, found none", ints);
}

KilnValue *
kiln_onnx_ml_one_hot(const KilnOnnxSteps *s, KilnValue *index, KilnValue *depth, KilnValue *values)
{
    const KilnAttrs_one_hot attrs = { .axis = -1 };
    return kiln_onnx_step3(s, KILN_OP_one_hot, &attrs, index, depth, values);
}

KilnValue *
kiln_onnx_ml_gather(const KilnOnnxSteps *s, KilnValue *data, KilnValue *indices, int64_t axis)
{
    return kiln_onnx_step_gather(s, data, indices, axis);
}

KilnValue *
kiln_onnx_ml_label(const KilnOnnxSteps *s, KilnInts labels, KilnValue *index)
{
    bool counts = true;
    for (uint32_t i = 0; i < labels.n; i++)
        counts &= labels.v[i] == i;
    return counts ? index
                  : kiln_onnx_ml_gather(s, kiln_onnx_ints(s->call, "labels", labels.v, labels.n),
                                        index, 0);
}

KilnValue *
kiln_onnx_ml_largest(const KilnOnnxSteps *s, KilnValue *scores)
{
    KilnAttrs_arg_max attrs = { .axis = 1, .keepdims = false };
    return kiln_onnx_step1(s, KILN_OP_arg_max, &attrs, scores);
}

KilnValue *
kiln_onnx_ml_above(const KilnOnnxSteps *s, KilnValue *scores, double threshold)
{
    static const KilnOnnxExtent rows[] = { KILN_ONNX_NUMBER(-1) };
    KilnValue *above = kiln_onnx_step_number(s, KILN_OP_greater, scores, threshold);
    return kiln_onnx_step_cast(s, kiln_onnx_step_reshape(s, above, rows, 1), KILN_DTYPE_i64);
}

KilnValue *
kiln_onnx_ml_reduce(const KilnOnnxSteps *s, KilnOp op, KilnValue *x)
{
    static const int64_t last[] = { -1 };
    /* All reductions have the attributes of this one. */
    KilnAttrs_reduce_sum attrs = { .keepdims = true };
    return kiln_onnx_step2(s, op, &attrs, x, kiln_onnx_ints(s->call, "axes", last, 1));
}
