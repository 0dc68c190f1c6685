/* SPDX-License-Identifier: Apache-2.0 */
/* LabelEncoder, CategoryMapper and OneHotEncoder of ai.onnx.ml, and the strings of TfIdfVectorizer.
 */
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
#include "graph/texts.h"

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
    return tensor ? kiln_onnx_helper(s->call, name, tensor) : NULL;
}

/* The strings of attribute @name; NULL where it has none. */
static const KilnOnnxAttr *
take_texts(KilnOnnxCall *call, const char *name)
{
    const KilnOnnxAttr *attr = kiln_onnx_take(call, name);
    return attr && attr->proto->n_strings ? attr : NULL;
}

/* What the one attribute of `<what>_int64s`, `<what>_floats`, `<what>_strings` and `<what>_tensor`
 * holds. */
static KilnValue *
list_of(const KilnOnnxSteps *s, const char *what)
{
    KilnOnnxCall *call = s->call;
    g_autofree char *of_ints = g_strdup_printf("%s_int64s", what);
    g_autofree char *of_floats = g_strdup_printf("%s_floats", what);
    g_autofree char *of_tensor = g_strdup_printf("%s_tensor", what);
    g_autofree char *of_strings = g_strdup_printf("%s_strings", what);
    const KilnOnnxAttr *tensor = kiln_onnx_take(call, of_tensor);
    const KilnOnnxAttr *texts = take_texts(call, of_strings);
    KilnInts ints = { 0 };
    KilnFloats floats = { 0 };
    bool there;
    if (!kiln_onnx_take_ints(call, of_ints, &ints, &there, s->error) ||
        !kiln_onnx_take_floats(call, of_floats, &floats, s->error))
        return NULL;
    const int found = (ints.n > 0) + (floats.n > 0) + (tensor != NULL) + (texts != NULL);
    if (found != 1) {
        kiln_onnx_throw(call, KILN_ERROR_INVALID, s->error,
                        "expected one of '%s', '%s', '%s' and '%s', found %d of them", of_ints,
                        of_floats, of_strings, of_tensor, found);
        return NULL;
    }
    if (tensor)
        return tensor_of(s, of_tensor, tensor);
    if (texts)
        return kiln_onnx_ml_texts(s, what, texts);
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
    const char *text = "_Unused";
    if (!kiln_onnx_take_text(call, "default_string", &text, s->error) ||
        !kiln_onnx_take_int(call, "default_int64", &number, s->error) ||
        !kiln_onnx_take_float(call, "default_float", &real, s->error))
        return NULL;
    const KilnDType dtype = values->type.dtype;
    if (tensor)
        return tensor_of(s, "default_tensor", tensor);
    if (dtype == KILN_DTYPE_string)
        return kiln_onnx_ml_text(s, "default", text);
    if (kiln_dtype_is_float(dtype))
        return kiln_onnx_scalar(call, "default", dtype, (double)real);
    return kiln_onnx_step_cast(s, kiln_onnx_ints(call, "default", &number, 1), dtype);
}

static gboolean
encode(const KilnOnnxSteps *s, KilnValue *x, KilnValue *keys, KilnValue *values)
{
    KilnValue *otherwise = keys && values ? default_of(s, values) : NULL;
    KilnValue *operands[] = { x, keys, values, otherwise };
    return otherwise && kiln_onnx_set_result(s->call, 0,
                                             kiln_onnx_build(s->call, KILN_OP_label_encoder, NULL,
                                                             operands, 4, s->error));
}

/* Strings become the integers of the other list, and integers the strings. */
static gboolean
map(const KilnOnnxSteps *s, KilnValue *x, KilnValue *texts, KilnValue *integers)
{
    const bool from_texts = x->type.dtype == KILN_DTYPE_string;
    return encode(s, x, from_texts ? texts : integers, from_texts ? integers : texts);
}

gboolean
kiln_onnx_convert_label_encoder(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    const KilnOnnxAttr *classes = x ? take_texts(call, "classes_strings") : NULL;
    if (!x)
        return FALSE;
    if (classes)
        return map(&s, x, kiln_onnx_ml_texts(&s, "classes", classes),
                   kiln_onnx_ml_numbers(&s, "numbers", (int64_t)classes->proto->n_strings));
    KilnValue *keys = list_of(&s, "keys");
    KilnValue *values = keys ? list_of(&s, "values") : NULL;
    const int64_t n_keys = values ? kiln_type_elements(&keys->type) : 0;
    const int64_t n_values = values ? kiln_type_elements(&values->type) : 0;
    if (n_keys != n_values)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "attribute 'values_*': expected %" G_GINT64_FORMAT
                               " elements, one for each key, found %" G_GINT64_FORMAT,
                               n_keys, n_values);
    return values && encode(&s, x, keys, values);
}

gboolean
kiln_onnx_convert_category_mapper(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    KilnInts integers = { 0 };
    bool there;
    const KilnOnnxAttr *texts = take_texts(call, "cats_strings");
    if (!x || !kiln_onnx_take_ints(call, "cats_int64s", &integers, &there, error))
        return FALSE;
    if (!texts || integers.n != texts->proto->n_strings)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected as many elements of 'cats_int64s' as of 'cats_strings', "
                               "found %u and %zu",
                               integers.n, texts ? texts->proto->n_strings : 0);
    return map(&s, x, kiln_onnx_ml_texts(&s, "texts", texts),
               kiln_onnx_ints(call, "integers", integers.v, integers.n));
}

/* --- OneHotEncoder --- */

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
    const KilnOnnxAttr *texts = take_texts(call, "cats_strings");
    const int64_t n = texts ? (int64_t)texts->proto->n_strings : cats.n;
    if (!n || (texts && cats.n))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected categories in one of 'cats_int64s' and 'cats_strings', "
                               "found %s",
                               n ? "both" : "none");
    KilnValue *index = texts ? kiln_onnx_ml_find(&s, x, kiln_onnx_ml_texts(&s, "cats", texts), n)
                             : kiln_onnx_ml_find(&s, kiln_onnx_step_cast(&s, x, KILN_DTYPE_i64),
                                                 kiln_onnx_ints(call, "cats", cats.v, cats.n), n);
    if (!zeros)
        index = kiln_onnx_step_gather(&s, kiln_onnx_ml_numbers(&s, "known", n), index, 0);
    const KilnFloats values = { 2, (float *)off_on };
    return kiln_onnx_set_result(
        call, 0,
        kiln_onnx_ml_one_hot(&s, index, kiln_onnx_scalar(call, "depth", KILN_DTYPE_i64, (double)n),
                             kiln_onnx_ml_floats(&s, "off_on", KILN_DTYPE_f32, values)));
}

/* --- TfIdfVectorizer --- */

static guint
hash_text(gconstpointer text)
{
    return (guint)kiln_text_hash(text);
}

static gboolean
texts_equal(gconstpointer a, gconstpointer b)
{
    return kiln_text_equal(a, b);
}

/* Strings of the pool get numbers: the place of the last one that is equal. Others get -1, which no
 * n-gram has. */
static gboolean
number_strings(const KilnOnnxSteps *s, KilnValue *x, const KilnOnnxAttr *pool)
{
    KilnOnnxCall *call = s->call;
    const Onnx__AttributeProto *proto = pool->proto;
    const guint n = (guint)proto->n_strings;
    g_autoptr(GHashTable) last = g_hash_table_new(hash_text, texts_equal);
    g_autofree KilnText *texts = g_new(KilnText, n + 1);
    g_autofree int64_t *numbers = g_new(int64_t, n + 1);
    for (guint i = 0; i < n; i++) {
        texts[i] = (KilnText){ (const char *)proto->strings[i].data, proto->strings[i].len };
        g_hash_table_replace(last, &texts[i], GUINT_TO_POINTER(i));
    }
    for (guint i = 0; i < n; i++)
        numbers[i] = GPOINTER_TO_UINT(g_hash_table_lookup(last, &texts[i]));
    kiln_onnx_attrs(call, tf_idf_vectorizer)->pool_int64s =
        kiln_ints_make(call->import->module->arena, numbers, n);
    KilnValue *found = kiln_onnx_ml_find(s, x, kiln_onnx_ml_texts(s, "pool", pool), -1);
    kiln_onnx_set_operand(call, 0, found);
    return found != NULL;
}

gboolean
kiln_onnx_convert_n_grams(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    KilnValue *x = kiln_onnx_need(call, 0, error);
    const KilnOnnxAttr *pool = take_texts(call, "pool_strings");
    return x && (!pool || number_strings(&s, x, pool));
}
