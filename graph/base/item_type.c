/* SPDX-License-Identifier: Apache-2.0 */
/* Types of items: what elements of different types have in common. */
#include "graph/base/item.h"
#include "graph/error.h"

KilnType
kiln_item_type(const KilnItem *item)
{
    int rank;
    const int64_t *dims = kiln_item_dims(item, &rank);
    return kiln_type_make(kiln_item_dtype(item), rank, dims);
}

static KilnType
list_type(const KilnItem *item, KilnArena *arena)
{
    KilnType element = kiln_type_unranked(KILN_DTYPE_f32);
    element.rank = KILN_RANK_NONE;
    for (size_t i = 0; i < kiln_item_length(item); i++) {
        const KilnType type = kiln_item_full_type(kiln_item_get(item, i), arena);
        if (i == 0)
            element = type;
        else
            kiln_type_merge(arena, &element, &type, &element);
    }
    return kiln_type_of_items(arena, kiln_item_dtype(item), &element);
}

KilnType
kiln_item_full_type(const KilnItem *item, KilnArena *arena)
{
    KilnDType dtype = kiln_item_dtype(item);
    if (dtype == KILN_DTYPE_map)
        return kiln_type_of_map(arena, kiln_item_dtype(kiln_item_get(item, 0)),
                                kiln_item_dtype(kiln_item_get(item, 1)));
    return kiln_dtype_is_item(dtype) ? list_type(item, arena) : kiln_item_type(item);
}

static void
merge_dims(const KilnType *a, const KilnType *b, KilnType *out)
{
    if (a->rank == KILN_RANK_NONE || b->rank == KILN_RANK_NONE) {
        *out = a->rank == KILN_RANK_NONE ? *b : *a;
        return;
    }
    KilnType merged = *a;
    if (a->rank != b->rank)
        merged = kiln_type_unranked(a->dtype);
    for (int d = 0; d < merged.rank; d++) {
        if (kiln_type_equal_dims(a, d, b, d))
            continue;
        merged.dims[d] = KILN_DIM_UNKNOWN;
        merged.open[d] = NULL;
    }
    *out = merged;
}

bool
kiln_type_merge(KilnArena *arena, const KilnType *a, const KilnType *b, KilnType *out)
{
    KilnType merged;
    if (a->dtype != b->dtype)
        return false;
    if (!kiln_dtype_is_item(a->dtype)) {
        merge_dims(a, b, out);
        return true;
    }
    if (a->contents->key != b->contents->key ||
        !kiln_type_merge(arena, &a->contents->type, &b->contents->type, &merged))
        return false;
    if (kiln_type_equal(&merged, &a->contents->type))
        *out = *a;
    else if (kiln_type_equal(&merged, &b->contents->type))
        *out = *b;
    else
        *out = kiln_type_of_items(arena, a->dtype, &merged);
    return true;
}

/* --- ranks of elements --- */

int
kiln_item_element_rank(const KilnItem *item)
{
    int rank = KILN_RANK_NONE;
    if (!item)
        return rank;
    if (!kiln_dtype_is_item(kiln_item_dtype(item))) {
        kiln_item_dims(item, &rank);
        return rank;
    }
    for (size_t i = 0; i < kiln_item_length(item); i++) {
        int inner = kiln_item_element_rank(kiln_item_get(item, i));
        if (rank != KILN_RANK_NONE && inner != rank)
            return KILN_RANK_UNKNOWN;
        rank = inner;
    }
    return rank;
}

bool
kiln_type_wants_element_rank(const KilnType *type)
{
    if (!type->contents)
        return false;
    while (type->contents && type->dtype != KILN_DTYPE_map)
        type = &type->contents->type;
    return type->rank == KILN_RANK_UNKNOWN;
}

KilnType
kiln_type_with_element_rank(KilnArena *arena, const KilnType *type, int rank)
{
    KilnType element = *kiln_type_element(type);
    if (element.contents)
        element = kiln_type_with_element_rank(arena, &element, rank);
    else
        element.rank = rank;
    for (int d = 0; d < element.rank; d++)
        kiln_type_set_dim(&element, d, NULL);
    return kiln_type_of_items(arena, type->dtype, &element);
}

/* --- checks --- */

static gboolean
throw_item(const KilnItem *item, const KilnType *type, KilnError code, const char *what,
           GError **error)
{
    g_autofree char *expected = kiln_type_to_string(type);
    if (kiln_dtype_is_item(kiln_item_dtype(item)))
        return kiln_throw(error, code, "%s: expected %s, found one of type %s", what, expected,
                          kiln_dtype_name(kiln_item_dtype(item)));
    const KilnType is = kiln_item_type(item);
    g_autofree char *found = kiln_type_to_string(&is);
    return kiln_throw(error, code, "%s: expected %s, found %s", what, expected, found);
}

static gboolean
check_tensor(const KilnItem *item, const KilnType *type, const char *what, GError **error)
{
    const KilnType is = kiln_item_type(item);
    bool fits = type->rank < 0 || type->rank == is.rank;
    for (int d = 0; fits && d < type->rank; d++)
        fits = type->open[d] || type->dims[d] < 0 || type->dims[d] == is.dims[d];
    return fits || throw_item(item, type, KILN_ERROR_SHAPE, what, error);
}

gboolean
kiln_item_check(const KilnItem *item, const KilnType *type, const char *what, GError **error)
{
    if (!item) /* an empty one */
        return TRUE;
    if (kiln_item_dtype(item) != type->dtype)
        return throw_item(item, type, KILN_ERROR_TYPE, what, error);
    if (!kiln_dtype_is_item(type->dtype))
        return check_tensor(item, type, what, error);
    if (type->dtype == KILN_DTYPE_map)
        return (kiln_item_dtype(kiln_item_get(item, 0)) == type->contents->key &&
                kiln_item_dtype(kiln_item_get(item, 1)) == type->contents->type.dtype) ||
               throw_item(item, type, KILN_ERROR_TYPE, what, error);
    for (size_t i = 0; i < kiln_item_length(item); i++) {
        g_autofree char *inner = g_strdup_printf("%s: item %zu", what, i);
        if (!kiln_item_check(kiln_item_get(item, i), &type->contents->type, inner, error))
            return FALSE;
    }
    return TRUE;
}
