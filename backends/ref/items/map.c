/* SPDX-License-Identifier: Apache-2.0 */
/* Maps: an item of keys and an item of values, both of rank 1. */
#include "backends/ref/items/items.h"
#include "graph/base/alloc.h"
#include "backends/ref/kernel.h"
#include "graph/attr.h"
#include "graph/base/item.h"
#include "graph/base/number.h"
#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "graph/texts.h"
#include "graph/type.h"
#include "ir/instr.h"
#include "ir/ir.h"
#include "ir/kernel.h"

#include <string.h>

enum {
    LONGEST_NUMBER = 384 /* characters of an f64 without an exponent, with six digits */
};

/* --- zip_map --- */

/* The labels as one item, which all maps share. */
static KilnItem *
labels_of(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_zip_map *attrs = kiln_instr_attrs(args->instr, zip_map);
    const KilnStrings *texts = &attrs->classlabels_strings;
    const KilnInts *numbers = &attrs->classlabels_int64s;
    const int64_t n = texts->n ? texts->n : numbers->n;
    const KilnType type =
        kiln_type_make(texts->n ? KILN_DTYPE_string : KILN_DTYPE_i64, 1, (int64_t[]){ n });
    if (!texts->n)
        return kiln_item_make_copy(args->texts, &type, numbers->v);
    const KilnText **at = kiln_item_scratch(args->texts, (size_t)n);
    bool good = at != NULL;
    for (int64_t i = 0; good && i < n; i++)
        good = kiln_text_new_copy(args->texts, texts->v[i], strlen(texts->v[i]), &at[i]);
    KilnItem *labels = good ? kiln_item_make_copy(args->texts, &type, at) : NULL;
    kiln_free(at);
    return labels;
}

const char *
kiln_ref_zip_map(const KilnKernelArgs *args)
{
    const KilnType *x = ref_type(args, 1);
    const int64_t n = x->dims[x->rank - 1], rows = x->rank == 2 ? x->dims[0] : 1;
    const KilnType row = kiln_type_make(KILN_DTYPE_f32, 1, &n);
    KilnItem *labels = labels_of(args), *list = NULL;
    for (int64_t i = 0; labels && i < rows; i++) {
        KilnItem *parts[] = { labels, kiln_item_make_copy(args->texts, &row,
                                                          (const float *)args->data[1] + i * n) };
        KilnItem *map =
            parts[1] ? kiln_item_make_list(args->texts, KILN_DTYPE_map, parts, 2) : NULL;
        list = map ? kiln_item_insert(args->texts, list, (size_t)i, map) : NULL;
        if (!list)
            return ref_no_items;
    }
    if (labels)
        *(KilnItem **)args->data[0] = list;
    return labels ? NULL : ref_no_items;
}

/* --- out of maps --- */

static int64_t
entries_of(const KilnItem *map)
{
    int rank;
    return map ? kiln_item_dims(kiln_item_get(map, 0), &rank)[0] : 0;
}

const char *
kiln_ref_map_length(const KilnKernelArgs *args)
{
    *(int64_t *)args->data[0] = entries_of(ref_item(args, 1));
    return NULL;
}

/* Writes value @i of @map to element @to of operand 0. Numbers have six digits behind the point. */
static const char *
store_value(const KilnKernelArgs *args, const KilnItem *map, int64_t i, int64_t to)
{
    const KilnItem *values = kiln_item_get(map, 1);
    const KilnDType from = kiln_item_dtype(values), dtype = ref_type(args, 0)->dtype;
    const size_t size = kiln_dtype_size(dtype);
    const char *element = (const char *)kiln_item_data(values) + (size_t)i * kiln_dtype_size(from);
    char *out = (char *)args->data[0] + (size_t)to * size;
    char text[LONGEST_NUMBER];
    if (from == dtype)
        return kiln_ref_copy_elements(args, dtype, out, element, 1) ? NULL : ref_no_items;
    if (dtype == KILN_DTYPE_string) {
        g_ascii_formatd(text, sizeof text, "%f", kiln_element_as_f64(from, element, 0));
        return kiln_text_new_copy(args->texts, text, strlen(text), (const KilnText **)(void *)out)
                   ? NULL
                   : ref_no_items;
    }
    if (from != KILN_DTYPE_string) {
        kiln_element_store_f64(dtype, out, 0, kiln_element_as_f64(from, element, 0));
        return NULL;
    }
    const KilnText word = kiln_text_of(*(const KilnText *const *)(const void *)element);
    char *end = text;
    size_t n = MIN(word.length, sizeof text - 1);
    memcpy(text, word.text, n);
    text[n] = '\0';
    kiln_element_store_f64(dtype, out, 0, g_ascii_strtod(text, &end));
    return end != text && word.length == (size_t)(end - text) ? NULL
                                                              : "a value of the map is no number";
}

/* The entry with the least key above @after, or the first of all; -1: there is none. */
static int64_t
next_entry(const int64_t *keys, int64_t n, int64_t after, bool any)
{
    int64_t found = -1;
    for (int64_t i = 0; i < n; i++) {
        if ((any || keys[i] > after) && (found < 0 || keys[i] < keys[found]))
            found = i;
    }
    return found;
}

/* What a sparse result has where the map has no key: 0, or its text. */
static bool
pad(const KilnKernelArgs *args, int64_t n)
{
    const KilnDType dtype = ref_type(args, 0)->dtype;
    const KilnText **texts = args->data[0];
    const KilnText *zero = NULL;
    if (dtype != KILN_DTYPE_string) {
        if (n)
            memset(args->data[0], 0, (size_t)n * kiln_dtype_size(dtype));
        return true;
    }
    if (n && !kiln_text_new_copy(args->texts, "0.f", 3, &zero))
        return false;
    for (int64_t i = 0; i < n; i++)
        texts[i] = zero;
    return true;
}

const char *
kiln_ref_cast_map(const KilnKernelArgs *args)
{
    const int64_t room = ref_elements(ref_type(args, 0));
    const bool sparse = kiln_instr_attrs(args->instr, cast_map)->max_map > 0;
    const KilnItem *map = ref_item(args, 1);
    const int64_t n = entries_of(map), *keys = map ? kiln_item_data(kiln_item_get(map, 0)) : NULL;
    const char *why = NULL;
    int64_t at = 0;
    if (!pad(args, room))
        return ref_no_items;
    for (int64_t i = n ? next_entry(keys, n, 0, true) : -1; !why && i >= 0;
         i = next_entry(keys, n, keys[i], false)) {
        int64_t to = sparse ? keys[i] : at++;
        if (to < 0 || (!sparse && to >= room))
            return sparse ? "a key of the map is below 0" : "the map has two equal keys";
        if (to < room) /* keys behind the result are passed over */
            why = store_value(args, map, i, to);
    }
    return why;
}

/* The place of key @i in the vocabulary; -1: it is not there. */
static int64_t
word_of(const KilnInstrAttrs_dict_vectorizer *attrs, const KilnItem *keys, int64_t i)
{
    const int64_t *numbers = kiln_item_data(keys);
    const KilnText *const *texts = kiln_item_data(keys);
    for (uint32_t k = 0; k < attrs->int64_vocabulary.n; k++) {
        if (attrs->int64_vocabulary.v[k] == numbers[i])
            return k;
    }
    for (uint32_t k = 0; k < attrs->string_vocabulary.n; k++) {
        const char *word = attrs->string_vocabulary.v[k];
        KilnText text = kiln_text_of(texts[i]);
        if (strlen(word) == text.length && memcmp(word, text.text, text.length) == 0)
            return k;
    }
    return -1;
}

const char *
kiln_ref_dict_vectorizer(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_dict_vectorizer *attrs = kiln_instr_attrs(args->instr, dict_vectorizer);
    const KilnItem *map = ref_item(args, 1);
    const char *why = NULL;
    memset(args->data[0], 0, (size_t)kiln_type_bytes(ref_type(args, 0)));
    for (int64_t i = 0; !why && i < entries_of(map); i++) {
        int64_t to = word_of(attrs, kiln_item_get(map, 0), i);
        if (to >= 0) /* other keys are passed over */
            why = store_value(args, map, i, to);
    }
    return why;
}
