/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/random_items.h"

#include "graph/base/random.h"
#include "graph/error.h"

enum {
    MAX_ITEMS = KILN_RANDOM_MIN_ITEMS + 1,
    MAX_EXTENT = 4
};

/* A number of 0 … @n - 1 that depends on the name. */
static int64_t
pick(const char *name, uint64_t seed, uint64_t which, int64_t n)
{
    return (int64_t)(kiln_random_unit(kiln_random_seed(seed, name), which) * (double)n);
}

/* @type with numbers for all that it leaves open. */
static KilnType
settled(const KilnType *type, const char *name, uint64_t seed)
{
    KilnType out = kiln_type_make(type->dtype, type->rank, type->dims);
    if (type->rank < 0) {
        out.rank = 1 + (int)pick(name, seed, KILN_MAX_RANK, 2);
        for (int d = 0; d < out.rank; d++)
            out.dims[d] = KILN_DIM_UNKNOWN;
    }
    for (int d = 0; d < out.rank; d++) {
        if (out.dims[d] < 0)
            out.dims[d] = 1 + pick(name, seed, (uint64_t)d, MAX_EXTENT);
    }
    return out;
}

static KilnItem *
random_tensor(const KilnType *type, KilnRandomElementFn draw, const char *name, uint64_t seed,
              GError **error)
{
    const KilnType of = settled(type, name, seed);
    g_autoptr(KilnTensor) tensor = draw(&of, name, seed, error);
    g_autoptr(GBytes) bytes = tensor ? kiln_tensor_view(tensor, error) : NULL;
    return bytes ? kiln_item_new_tensor(of.dtype, of.rank, of.dims, g_bytes_get_data(bytes, NULL),
                                        error)
                 : NULL;
}

/* Keys must differ: they are counted. */
static KilnItem *
random_keys(KilnDType dtype, int64_t n, GError **error)
{
    static const KilnText words[MAX_ITEMS] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
    static const KilnText *const texts[MAX_ITEMS] = { &words[0], &words[1], &words[2] };
    static const int64_t numbers[MAX_ITEMS] = { 0, 1, 2 };
    const void *keys = dtype == KILN_DTYPE_string ? (const void *)texts : numbers;
    return kiln_item_new_tensor(dtype, 1, &n, keys, error);
}

static KilnItem *
random_map(const KilnType *type, KilnRandomElementFn draw, const char *name, uint64_t seed,
           GError **error)
{
    const int64_t n = MAX_ITEMS - pick(name, seed, KILN_MAX_RANK + 1, 2);
    const KilnType of = kiln_type_make(type->contents->type.dtype, 1, &n);
    g_autoptr(KilnItem) keys = random_keys(type->contents->key, n, error);
    g_autoptr(KilnItem) values = keys ? random_tensor(&of, draw, name, seed, error) : NULL;
    return values ? kiln_item_new_map(keys, values, error) : NULL;
}

KilnItem *
kiln_random_item(const KilnType *type, KilnRandomElementFn draw, const char *name, uint64_t seed,
                 GError **error)
{
    if (!kiln_dtype_is_item(type->dtype))
        return random_tensor(type, draw, name, seed, error);
    if (type->dtype == KILN_DTYPE_map)
        return random_map(type, draw, name, seed, error);
    KilnItem *items[MAX_ITEMS] = { NULL }, *made = NULL;
    bool optional = type->dtype == KILN_DTYPE_optional, good = true;
    size_t n = optional ? 1 : MAX_ITEMS - (size_t)pick(name, seed, KILN_MAX_RANK + 1, 2);
    KilnType element = *kiln_type_element(type);
    if (!kiln_dtype_is_item(element.dtype))
        element = settled(&element, name, seed);
    for (size_t i = 0; good && i < n; i++) {
        g_autofree char *inner = g_strdup_printf("%s[%zu]", name, i);
        items[i] = kiln_random_item(&element, draw, inner, seed, error);
        good = items[i] != NULL;
    }
    if (good)
        made = optional ? kiln_item_new_optional(items[0], error)
                        : kiln_item_new_sequence(items, n, error);
    for (size_t i = 0; i < n; i++)
        kiln_item_unref(items[i]);
    return made;
}
