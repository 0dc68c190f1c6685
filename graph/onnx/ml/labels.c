/* SPDX-License-Identifier: Apache-2.0 */
/* LabelEncoder and OneHotEncoder of ai.onnx.ml, and TfIdfVectorizer, of numbers. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/ml/ml.h"
#include "graph/onnx/model.h"
#include "graph/onnx/steps.h"
#include "graph/onnx/tensor.h"
#include "graph/op/generate.h"
#include "graph/op/learn.h"
#include "graph/op/structure.h"
#include "graph/tensor.h"

/* --- LabelEncoder --- */

/* The constant of a tensor attribute @name. */
static KilnValue *
tensor_of(const KilnOnnxSteps *s, const char *name, const KilnOnnxAttr *attr)
{
    KilnTensor *tensor = NULL;
    if (attr->tensor)
        tensor = kiln_onnx_tensor_load(attr->tensor, &s->call->import->files, s->error);
    else
        kiln_onnx_throw(s->call, KILN_ERROR_INVALID, s->error, "attribute '%s': expected a tensor",
                        name);
    if (tensor && tensor->type.dtype == KILN_DTYPE_string) {
        kiln_tensor_free(tensor);
        kiln_onnx_unsupported(s->call, s->error, "attribute '%s': strings", name);
        return NULL;
    }
    return tensor ? kiln_onnx_helper(s->call, name, tensor) : NULL;
}

/* What the one attribute of `<what>_int64s`, `<what>_floats` and `<what>_tensor` holds. */
static KilnValue *
list_of(const KilnOnnxSteps *s, const char *what)
{
    KilnOnnxCall *call = s->call;
    g_autofree char *of_ints = g_strdup_printf("%s_int64s", what);
    g_autofree char *of_floats = g_strdup_printf("%s_floats", what);
    g_autofree char *of_tensor = g_strdup_printf("%s_tensor", what);
    g_autofree char *of_strings = g_strdup_printf("%s_strings", what);
    const KilnOnnxAttr *tensor = kiln_onnx_take(call, of_tensor);
    KilnInts ints = { 0 };
    KilnFloats floats = { 0 };
    bool there;
    if (kiln_onnx_take(call, of_strings)) {
        kiln_onnx_unsupported(call, s->error, "attribute '%s': strings", of_strings);
        return NULL;
    }
    if (!kiln_onnx_take_ints(call, of_ints, &ints, &there, s->error) ||
        !kiln_onnx_take_floats(call, of_floats, &floats, s->error))
        return NULL;
    if ((ints.n > 0) + (floats.n > 0) + (tensor != NULL) != 1) {
        kiln_onnx_throw(call, KILN_ERROR_INVALID, s->error,
                        "expected one of '%s', '%s' and '%s', found %d of them", of_ints, of_floats,
                        of_tensor, (ints.n > 0) + (floats.n > 0) + (tensor != NULL));
        return NULL;
    }
    if (tensor)
        return tensor_of(s, of_tensor, tensor);
    return ints.n ? kiln_onnx_ints(call, what, ints.v, ints.n)
                  : kiln_onnx_ml_floats(s, what, KILN_DTYPE_f32, floats);
}

/* The value of elements without a key, in the type of @values. */
static KilnValue *
default_of(const KilnOnnxSteps *s, const KilnValue *values)
{
    KilnOnnxCall *call = s->call;
    const KilnOnnxAttr *tensor = kiln_onnx_take(call, "default_tensor");
    int64_t number = -1;
    float real = -0.0f;
    kiln_onnx_take(call, "default_string");
    if (!kiln_onnx_take_int(call, "default_int64", &number, s->error) ||
        !kiln_onnx_take_float(call, "default_float", &real, s->error))
        return NULL;
    const KilnDType dtype = values->type.dtype;
    if (tensor)
        return tensor_of(s, "default_tensor", tensor);
    if (kiln_dtype_is_float(dtype))
        return kiln_onnx_scalar(call, "default", dtype, (double)real);
    return kiln_onnx_step_cast(s, kiln_onnx_ints(call, "default", &number, 1), dtype);
}

gboolean
kiln_onnx_convert_label_encoder(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (kiln_onnx_take(call, "classes_strings"))
        return kiln_onnx_unsupported(call, error, "attribute 'classes_strings': strings");
    KilnValue *keys = x ? list_of(&s, "keys") : NULL;
    KilnValue *values = keys ? list_of(&s, "values") : NULL;
    const int64_t n_keys = values ? kiln_type_elements(&keys->type) : 0;
    const int64_t n_values = values ? kiln_type_elements(&values->type) : 0;
    if (n_keys != n_values)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute 'values_*': expected %" G_GINT64_FORMAT
                               " elements, one for each key, found %" G_GINT64_FORMAT,
                               n_keys, n_values);
    KilnValue *otherwise = values ? default_of(&s, values) : NULL;
    if (!otherwise)
        return FALSE;
    KilnValue *operands[] = { x, keys, values, otherwise };
    return kiln_onnx_set_result(
        call, 0, kiln_onnx_build(call, KILN_OP_label_encoder, NULL, operands, 4, error));
}

/* --- OneHotEncoder --- */

static KilnValue *
numbers_below(const KilnOnnxSteps *s, const char *suffix, int64_t n)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ n });
    return kiln_onnx_helper(s->call, suffix, kiln_tensor_new_iota(&type));
}

/* The number of the category of each element. Elements without one get @n, which no column has;
 * where that is an error, an index into @n numbers says so. */
gboolean
kiln_onnx_convert_one_hot_encoder(KilnOnnxCall *call, GError **error)
{
    static const float off_on[] = { 0, 1 };
    const KilnOnnxSteps s = { call, error };
    KilnInts cats = { 0 };
    int64_t zeros = 1;
    bool there;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_take_int(call, "zeros", &zeros, error) ||
        !kiln_onnx_take_ints(call, "cats_int64s", &cats, &there, error))
        return FALSE;
    if (kiln_onnx_take(call, "cats_strings"))
        return kiln_onnx_unsupported(call, error, "attribute 'cats_strings': strings");
    if (!cats.n)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute 'cats_int64s': expected categories, found none");
    const double n = cats.n;
    KilnValue *operands[] = { kiln_onnx_step_cast(&s, x, KILN_DTYPE_i64),
                              kiln_onnx_ints(call, "cats", cats.v, cats.n),
                              numbers_below(&s, "columns", cats.n),
                              kiln_onnx_scalar(call, "none", KILN_DTYPE_i64, n) };
    KilnValue *index =
        operands[0] ? kiln_onnx_build(call, KILN_OP_label_encoder, NULL, operands, 4, error) : NULL;
    if (!zeros)
        index = kiln_onnx_ml_gather(&s, numbers_below(&s, "known", cats.n), index, 0);
    const KilnFloats values = { 2, (float *)off_on };
    return kiln_onnx_set_result(
        call, 0,
        kiln_onnx_ml_one_hot(&s, index, kiln_onnx_scalar(call, "depth", KILN_DTYPE_i64, n),
                             kiln_onnx_ml_floats(&s, "off_on", KILN_DTYPE_f32, values)));
}

/* --- TfIdfVectorizer --- */

gboolean
kiln_onnx_convert_n_grams(KilnOnnxCall *call, GError **error)
{
    return !kiln_onnx_take(call, "pool_strings") ||
           kiln_onnx_unsupported(call, error, "attribute 'pool_strings': strings");
}
