/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of sequences, optionals and maps. */
#include "graph/arena.h"
#include "graph/base/item.h"
#include "graph/base/number.h"
#include "graph/base/names.h"
#include "graph/texts.h"
#include "runtime/tensors/item_compare.h"
#include "tools/command.h"
#include "tools/summary.h"

#include <stdio.h>

enum {
    MAX_LINES = 8,   /* items of a sequence that are printed */
    MAX_ENTRIES = 8, /* entries of a map that are printed */
};

/* --- maps --- */

static size_t
count_entries(const KilnItem *map)
{
    const KilnItem *keys = kiln_item_get(map, 0);
    return keys ? kiln_item_bytes(keys) / kiln_dtype_size(kiln_item_dtype(keys)) : 0;
}

static KilnText
text_at(const KilnItem *texts, size_t i)
{
    return kiln_text_of(((const KilnText *const *)kiln_item_data(texts))[i]);
}

/* Key @i; a text without quotes. */
static char *
key_at(const KilnItem *keys, size_t i)
{
    if (kiln_item_dtype(keys) == KILN_DTYPE_i64)
        return g_strdup_printf("%" G_GINT64_FORMAT, ((const int64_t *)kiln_item_data(keys))[i]);
    const KilnText text = text_at(keys, i);
    return g_strndup(text.text, text.length);
}

static void
append_value(GString *out, const KilnItem *values, size_t i)
{
    KilnDType dtype = kiln_item_dtype(values);
    if (dtype == KILN_DTYPE_string)
        kiln_text_print(text_at(values, i), out);
    else if (dtype == KILN_DTYPE_i64)
        g_string_append_printf(out, "%" G_GINT64_FORMAT,
                               ((const int64_t *)kiln_item_data(values))[i]);
    else
        g_string_append_printf(out, "%.6g",
                               kiln_element_as_f64(dtype, kiln_item_data(values), (int64_t)i));
}

/* {a: 0.1, b: 0.7} */
static void
append_map(GString *out, const KilnItem *map)
{
    size_t n = count_entries(map);
    g_string_append_c(out, '{');
    for (size_t i = 0; i < MIN(n, (size_t)MAX_ENTRIES); i++) {
        g_autofree char *key = key_at(kiln_item_get(map, 0), i);
        g_autofree char *line = kiln_one_line(key);
        g_string_append_printf(out, "%s%s: ", i ? ", " : "", line);
        append_value(out, kiln_item_get(map, 1), i);
    }
    if (n > MAX_ENTRIES)
        g_string_append_printf(out, ", and %zu more", n - MAX_ENTRIES);
    g_string_append_c(out, '}');
}

static void
write_map(KilnJson *json, const char *key, const KilnItem *map)
{
    const KilnItem *values = kiln_item_get(map, 1);
    kiln_json_object(json, key);
    for (size_t i = 0; i < count_entries(map); i++) {
        g_autofree char *name = key_at(kiln_item_get(map, 0), i);
        KilnDType dtype = kiln_item_dtype(values);
        if (dtype == KILN_DTYPE_string) {
            const KilnText text = text_at(values, i);
            g_autofree char *copy = g_strndup(text.text, text.length);
            kiln_json_string(json, name, copy);
        } else if (dtype == KILN_DTYPE_i64) {
            kiln_json_int(json, name, ((const int64_t *)kiln_item_data(values))[i]);
        } else {
            kiln_json_number(json, name,
                             kiln_element_as_f64(dtype, kiln_item_data(values), (int64_t)i));
        }
    }
    kiln_json_end_object(json);
}

/* --- text --- */

static char *
type_of(const KilnItem *item)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    const KilnType type = kiln_item_full_type(item, arena);
    return kiln_type_to_string(&type);
}

/* What stands behind the type of @item: " min 0 max 1 mean 0.5", " of 3", " {a: 1}". */
static void
append_contents(GString *out, KilnItem *item, KilnDType dtype)
{
    KilnItem *inner = dtype == KILN_DTYPE_optional ? kiln_item_get(item, 0) : NULL;
    if (inner) {
        append_contents(out, inner, kiln_item_dtype(inner));
    } else if (dtype == KILN_DTYPE_optional) {
        g_string_append(out, " empty");
    } else if (dtype == KILN_DTYPE_map) {
        append_map(g_string_append_c(out, ' '), item);
    } else if (dtype == KILN_DTYPE_sequence) {
        g_string_append_printf(out, " of %zu", kiln_item_length(item));
    } else {
        g_autoptr(KilnTensor) tensor = kiln_item_as_tensor(item, NULL);
        if (tensor)
            kiln_summary_append(out, tensor);
    }
}

static void
print_items(KilnItem *sequence)
{
    size_t n = kiln_item_length(sequence);
    for (size_t i = 0; i < MIN(n, (size_t)MAX_LINES); i++) {
        KilnItem *item = kiln_item_get(sequence, i);
        g_autofree char *type = type_of(item);
        g_autoptr(GString) line = g_string_new(NULL);
        append_contents(line, item, kiln_item_dtype(item));
        printf("  item %zu: %s%s\n", i, type, line->str);
    }
    if (n > MAX_LINES)
        printf("  and %zu more\n", n - MAX_LINES);
}

/* The type of @item. What is empty tells none: then that of the program. */
static char *
whole_type(const KilnTensorInfo *info, const KilnItem *item)
{
    return kiln_item_length(item) ? type_of(item) : g_strdup(info->contents);
}

void
kiln_summary_print_item(const KilnTensorInfo *info, KilnItem *item)
{
    g_autofree char *shown = kiln_one_line(info->name);
    g_autofree char *type = whole_type(info, item);
    g_autoptr(GString) line = g_string_new(NULL);
    KilnItem *inner = kiln_item_get(item, 0);
    append_contents(line, item, info->dtype);
    printf("%s: %s%s\n", shown, type, line->str);
    if (info->dtype == KILN_DTYPE_sequence)
        print_items(item);
    else if (info->dtype == KILN_DTYPE_optional && inner &&
             kiln_item_dtype(inner) == KILN_DTYPE_sequence)
        print_items(inner);
}

/* --- JSON --- */

static void
write_item(KilnJson *json, const char *key, KilnItem *item, KilnDType dtype)
{
    if (dtype == KILN_DTYPE_map) {
        write_map(json, key, item);
        return;
    }
    if (dtype == KILN_DTYPE_optional) {
        KilnItem *inner = kiln_item_get(item, 0);
        if (inner)
            write_item(json, key, inner, kiln_item_dtype(inner));
        else
            kiln_json_null(json, key);
        return;
    }
    if (dtype == KILN_DTYPE_sequence) {
        kiln_json_array(json, key);
        for (size_t i = 0; i < kiln_item_length(item); i++)
            write_item(json, NULL, kiln_item_get(item, i), kiln_item_dtype(kiln_item_get(item, i)));
        kiln_json_end_array(json);
        return;
    }
    g_autoptr(KilnTensor) tensor = kiln_item_as_tensor(item, NULL);
    kiln_json_object(json, key);
    if (tensor)
        kiln_summary_write_members(json, tensor, NULL);
    kiln_json_end_object(json);
}

void
kiln_summary_write_item(KilnJson *json, const KilnTensorInfo *info, KilnItem *item)
{
    g_autofree char *type = whole_type(info, item);
    kiln_json_object(json, NULL);
    kiln_json_string(json, "name", info->name);
    kiln_json_string(json, "type", type);
    write_item(json, "value", item, info->dtype);
    kiln_json_end_object(json);
}
