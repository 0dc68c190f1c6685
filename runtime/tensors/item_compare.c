/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensors/item_compare.h"

#include "graph/base/alloc.h"
#include "graph/base/item.h"
#include "graph/error.h"
#include "graph/base/names.h"
#include "graph/texts.h"
#include "runtime/tensors/tensor_compare.h"

#include <string.h>

typedef struct {
    double rtol, atol;
    double *out_abs, *out_rel;
} Comparison;

static void
release(gpointer item)
{
    kiln_item_unref(item);
}

KilnTensor *
kiln_item_as_tensor(KilnItem *item, GError **error)
{
    const KilnType type = kiln_item_type(item);
    if (type.dtype == KILN_DTYPE_string)
        return kiln_tensor_new_copy(&type, kiln_item_data(item), error);
    g_autoptr(GBytes) bytes = g_bytes_new_with_free_func(
        kiln_item_data(item), kiln_item_bytes(item), release, kiln_item_ref(item));
    return kiln_tensor_new_data(&type, bytes, error);
}

static gboolean
compare_tensors(const Comparison *comparison, KilnItem *got, KilnItem *want, GError **error)
{
    double worst_abs = 0, worst_rel = 0;
    g_autoptr(KilnTensor) left = kiln_item_as_tensor(got, error);
    g_autoptr(KilnTensor) right = left ? kiln_item_as_tensor(want, error) : NULL;
    gboolean good = right && kiln_tensor_compare(left, right, comparison->rtol, comparison->atol,
                                                 &worst_abs, &worst_rel, error);
    *comparison->out_abs = MAX(*comparison->out_abs, worst_abs);
    *comparison->out_rel = MAX(*comparison->out_rel, worst_rel);
    return good;
}

/* --- maps --- */

/* Key @i as a text, to be freed. */
static char *
key_text(const KilnItem *keys, size_t i)
{
    if (kiln_item_dtype(keys) == KILN_DTYPE_i64)
        return g_strdup_printf("%" G_GINT64_FORMAT, ((const int64_t *)kiln_item_data(keys))[i]);
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_text_print(kiln_text_of(((const KilnText *const *)kiln_item_data(keys))[i]), text);
    return g_strdup(text->str);
}

static size_t
count_keys(const KilnItem *map)
{
    const KilnItem *keys = kiln_item_get(map, 0);
    return keys ? kiln_item_bytes(keys) / kiln_dtype_size(kiln_item_dtype(keys)) : 0;
}

/* The values of @map in the order in which @want has their keys. */
static KilnItem *
values_like(const KilnItem *map, const KilnItem *want, GError **error)
{
    const KilnItem *keys = kiln_item_get(map, 0), *values = kiln_item_get(map, 1);
    const KilnItem *wanted = kiln_item_get(want, 0);
    size_t n = count_keys(map), size = kiln_dtype_size(kiln_item_dtype(values));
    g_autoptr(GHashTable) places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (size_t i = 0; i < n; i++)
        g_hash_table_insert(places, key_text(keys, i), GSIZE_TO_POINTER(i));
    char *elements = kiln_alloc_for("the values of a map", n, size, error);
    if (!elements)
        return NULL;
    KilnItem *result = NULL;
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        g_autofree char *key = key_text(wanted, i);
        gpointer place;
        good = g_hash_table_lookup_extended(places, key, NULL, &place);
        if (good)
            memcpy(elements + i * size,
                   (const char *)kiln_item_data(values) + GPOINTER_TO_SIZE(place) * size, size);
        else
            kiln_throw(error, KILN_ERROR_MISMATCH, "expected a value of key %s, found none", key);
    }
    const int64_t dim = (int64_t)n;
    if (good)
        result = kiln_item_new_tensor(kiln_item_dtype(values), 1, &dim, elements, error);
    kiln_free(elements);
    return result;
}

static gboolean
compare_maps(const Comparison *comparison, KilnItem *got, KilnItem *want, GError **error)
{
    KilnItem *found = kiln_item_get(got, 0), *expected = kiln_item_get(want, 0);
    if (!found || !expected)
        return TRUE; /* empty, both of them */
    if (kiln_item_dtype(found) != kiln_item_dtype(expected))
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected keys of %s, found %s",
                          kiln_dtype_name(kiln_item_dtype(expected)),
                          kiln_dtype_name(kiln_item_dtype(found)));
    g_autoptr(KilnItem) values = kiln_item_equal(found, expected)
                                     ? kiln_item_ref(kiln_item_get(got, 1))
                                     : values_like(got, want, error);
    if (!values)
        return FALSE;
    gboolean good = compare_tensors(comparison, values, kiln_item_get(want, 1), error);
    if (!good)
        kiln_prefix_error(error, "values of the map: ");
    return good;
}

/* --- all --- */

static gboolean
throw_length(KilnDType dtype, size_t expected, size_t found, GError **error)
{
    if (dtype == KILN_DTYPE_optional)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %s optional, found %s one",
                          expected ? "a filled" : "an empty", found ? "a filled" : "an empty");
    return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %zu %s, found %zu", expected,
                      dtype == KILN_DTYPE_map ? "keys" : "items", found);
}

static gboolean
compare(const Comparison *comparison, KilnItem *got, KilnItem *want, GError **error)
{
    KilnItem *any = want ? want : got;
    if (!any)
        return TRUE;
    KilnDType dtype = kiln_item_dtype(any), found = got ? kiln_item_dtype(got) : dtype;
    if (found != dtype && (kiln_dtype_is_item(found) || kiln_dtype_is_item(dtype)))
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %s, found %s",
                          kiln_dtype_name(dtype), kiln_dtype_name(found));
    if (!kiln_dtype_is_item(dtype))
        return compare_tensors(comparison, got, want, error);
    bool map = dtype == KILN_DTYPE_map;
    size_t n = map ? count_keys(want) : kiln_item_length(want);
    size_t n_found = map ? count_keys(got) : kiln_item_length(got);
    if (n != n_found)
        return throw_length(dtype, n, n_found, error);
    if (map)
        return compare_maps(comparison, got, want, error);
    for (size_t i = 0; i < n; i++) {
        if (compare(comparison, kiln_item_get(got, i), kiln_item_get(want, i), error))
            continue;
        if (dtype == KILN_DTYPE_sequence)
            kiln_prefix_error(error, "item %zu: ", i);
        return FALSE;
    }
    return TRUE;
}

gboolean
kiln_value_compare(const KilnTensor *got, const KilnTensor *want, double rtol, double atol,
                   double *out_abs, double *out_rel, GError **error)
{
    if (got->type.dtype != want->type.dtype || !kiln_dtype_is_item(got->type.dtype))
        return kiln_tensor_compare(got, want, rtol, atol, out_abs, out_rel, error);
    double worst_abs = 0, worst_rel = 0;
    const Comparison comparison = { rtol, atol, &worst_abs, &worst_rel };
    gboolean good = compare(&comparison, kiln_tensor_item(got), kiln_tensor_item(want), error);
    if (out_abs)
        *out_abs = worst_abs;
    if (out_rel)
        *out_rel = worst_rel;
    return good;
}
