/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/ml/ml.h"

#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/onnx/tensor.h"
#include "graph/op/gather.h"
#include "graph/op/learn.h"
#include "graph/op/logic.h"
#include "graph/op/reduce.h"
#include "graph/tensor.h"

#include <string.h>

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

KilnValue *
kiln_onnx_ml_texts(const KilnOnnxSteps *s, const char *suffix, const KilnOnnxAttr *attr)
{
    const Onnx__AttributeProto *proto = attr->proto;
    const KilnType type =
        kiln_type_make(KILN_DTYPE_string, 1, (int64_t[]){ (int64_t)proto->n_strings });
    KilnTensor *tensor = kiln_onnx_texts_load(&type, proto->strings, proto->n_strings, s->error);
    return tensor ? kiln_onnx_helper(s->call, suffix, tensor) : NULL;
}

KilnValue *
kiln_onnx_ml_text(const KilnOnnxSteps *s, const char *suffix, const char *text)
{
    const KilnType type = kiln_type_scalar(KILN_DTYPE_string);
    const KilnText one = { text, strlen(text) };
    KilnTensor *tensor = kiln_tensor_new_texts(&type, &one, 1, s->error);
    return tensor ? kiln_onnx_helper(s->call, suffix, tensor) : NULL;
}

KilnValue *
kiln_onnx_ml_numbers(const KilnOnnxSteps *s, const char *suffix, int64_t n)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ n });
    return kiln_onnx_helper(s->call, suffix, kiln_tensor_new_iota(&type));
}

KilnValue *
kiln_onnx_ml_find(const KilnOnnxSteps *s, KilnValue *x, KilnValue *keys, int64_t otherwise)
{
    if (!x || !keys)
        return NULL;
    KilnValue *operands[] = { x, keys, kiln_onnx_ml_numbers(s, "places", keys->type.dims[0]),
                              kiln_onnx_ints(s->call, "otherwise", &otherwise, 1) };
    return kiln_onnx_build(s->call, KILN_OP_label_encoder, NULL, operands, 4, s->error);
}

gboolean
kiln_onnx_ml_take_labels(KilnOnnxCall *call, const char *ints, KilnOnnxMlLabels *out,
                         GError **error)
{
    bool there = false;
    KilnInts numbers = { 0 };
    const KilnOnnxAttr *texts = kiln_onnx_take(call, "classlabels_strings");
    if (!kiln_onnx_take_ints(call, ints, &numbers, &there, error))
        return FALSE;
    if (texts && !texts->proto->n_strings)
        texts = NULL;
    if (texts && numbers.n)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attributes '%s' and 'classlabels_strings': expected one of them, "
                               "found both",
                               ints);
    *out = (KilnOnnxMlLabels){ texts ? (uint32_t)texts->proto->n_strings : numbers.n, numbers.v,
                               texts };
    return out->n > 0 || kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                         "expected labels in '%s' or 'classlabels_strings', found "
                                         "none",
                                         ints);
}

KilnValue *
kiln_onnx_ml_one_hot(const KilnOnnxSteps *s, KilnValue *index, KilnValue *depth, KilnValue *values)
{
    const KilnAttrs_one_hot attrs = { .axis = -1 };
    return kiln_onnx_step3(s, KILN_OP_one_hot, &attrs, index, depth, values);
}

KilnValue *
kiln_onnx_ml_label(const KilnOnnxSteps *s, KilnOnnxMlLabels labels, KilnValue *index)
{
    bool counts = !labels.texts;
    for (uint32_t i = 0; counts && i < labels.n; i++)
        counts = labels.ints[i] == i;
    if (counts || !index)
        return index;
    return kiln_onnx_step_gather(s,
                                 labels.texts
                                     ? kiln_onnx_ml_texts(s, "labels", labels.texts)
                                     : kiln_onnx_ints(s->call, "labels", labels.ints, labels.n),
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
