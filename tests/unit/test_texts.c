/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type string: their texts, blocks, heaps and tensors. */
#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/error.h"
#include "graph/tensor.h"
#include "graph/texts.h"

#include <criterion/criterion.h>
#include <string.h>

static const KilnText a = { "a", 1 }, b = { "b", 1 }, ab = { "ab", 2 }, zero = { "a\0b", 3 },
                      empty = { NULL, 0 }, bad = { "\xC0\xAF", 2 };

Test(texts, order_is_that_of_bytes)
{
    cr_expect(kiln_text_equal(NULL, &empty));
    cr_expect(kiln_text_equal(&a, &(KilnText){ "ax", 1 }));
    cr_expect_not(kiln_text_equal(&a, NULL));
    cr_expect_lt(kiln_text_compare(NULL, &a), 0);
    cr_expect_lt(kiln_text_compare(&a, &ab), 0);
    cr_expect_lt(kiln_text_compare(&ab, &b), 0);
    cr_expect_gt(kiln_text_compare(&zero, &a), 0);
    cr_expect_eq(kiln_text_compare(&ab, &(KilnText){ "ab", 2 }), 0);
    cr_expect_eq(kiln_text_hash(&empty), kiln_text_hash(NULL));
    cr_expect_neq(kiln_text_hash(&a), kiln_text_hash(&b));
}

Test(texts, poison_is_a_text)
{
    const KilnText *poisoned;
    memset(&poisoned, 0xFF, sizeof poisoned);
    cr_expect(strstr(kiln_text_of(poisoned).text, "poison"));
    cr_expect_not(kiln_text_equal(poisoned, &a));
}

Test(texts, utf8)
{
    static const char *const good[] = {
        "", "a", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"
    };
    static const char *const wrong[] = { "\x80",
                                         "\xC0\x80",
                                         "\xC1\xBF",
                                         "\xE0\x80\x80",
                                         "\xED\xA0\x80",
                                         "\xF0\x80\x80\x80",
                                         "\xF4\x90\x80\x80",
                                         "\xF8\x88\x80\x80",
                                         "\xE2\x82",
                                         "\xC3(" };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        cr_expect(kiln_text_is_utf8(good[i], strlen(good[i])), "%zu", i);
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        cr_expect_not(kiln_text_is_utf8(wrong[i], strlen(wrong[i])), "%zu", i);
    cr_expect(kiln_text_is_utf8("a\0b", 3));
}

Test(texts, stored_and_loaded)
{
    const KilnText *elements[] = { &a, NULL, &zero, &zero, &empty, &ab };
    g_autoptr(GBytes) stored = kiln_texts_store(elements, 6, NULL);
    gsize size;
    const char *data = g_bytes_get_data(stored, &size);
    cr_assert_eq(size, 7 * 8 + 1 + 3 + 3 + 2);
    g_autoptr(GBytes) loaded = kiln_texts_load(data, size, 6, NULL);
    const KilnText *const *found = g_bytes_get_data(loaded, &size);
    cr_assert_eq(size, sizeof elements);
    for (int i = 0; i < 6; i++)
        cr_expect(kiln_text_equal(found[i], elements[i]), "%d", i);
    cr_expect_null(found[1]);
}

static void
expect_not_loaded(const uint64_t *offsets, size_t n_offsets, const char *bytes, int64_t n)
{
    g_autoptr(GError) error = NULL;
    GByteArray *all = g_byte_array_new();
    g_byte_array_append(all, (const guint8 *)offsets, (guint)(n_offsets * sizeof *offsets));
    g_byte_array_append(all, (const guint8 *)bytes, (guint)strlen(bytes));
    cr_expect_null(kiln_texts_load(all->data, all->len, n, &error));
    cr_expect_eq(error->code, KILN_ERROR_FORMAT);
    g_byte_array_unref(all);
}

Test(texts, damaged_stores)
{
    expect_not_loaded((uint64_t[]){ 0, 1, 2 }, 3, "a", 2);
    expect_not_loaded((uint64_t[]){ 1, 1, 1 }, 3, "a", 2);
    expect_not_loaded((uint64_t[]){ 0, 2, 1 }, 3, "a", 2);
    expect_not_loaded((uint64_t[]){ 0, UINT64_MAX, 1 }, 3, "a", 2);
    expect_not_loaded((uint64_t[]){ 0, 1 }, 2, "a", 2);
    expect_not_loaded((uint64_t[]){ 0, 1 }, 2, "\xFF", 1);
    expect_not_loaded((uint64_t[]){ 0, 0 }, 2, "", -1);
    expect_not_loaded((uint64_t[]){ 0, 0 }, 2, "", INT64_MAX);
}

/* --- heaps --- */

Test(texts, a_heap_reuses_its_memory)
{
    g_autoptr(KilnTextHeap) heap = kiln_text_heap_new();
    const KilnText *text, *first = NULL;
    for (int run = 0; run < 3; run++) {
        kiln_text_heap_reset(heap);
        for (int i = 0; i < 5000; i++) {
            cr_assert(kiln_text_new_copy(heap, "some words", 10, &text));
            cr_assert(kiln_text_equal(text, &(KilnText){ "some words", 10 }));
            cr_assert_eq((uintptr_t)text % sizeof(void *), 0);
            if (i == 0 && run == 1)
                first = text;
            if (i == 0 && run == 2)
                cr_expect_eq(text, first, "one block from the second run on");
        }
    }
    cr_assert(kiln_text_new_copy(heap, "", 0, &text));
    cr_expect_null(text);
    cr_expect_null(kiln_text_heap_take_error(heap));
}

Test(texts, a_heap_has_a_limit)
{
    g_autoptr(KilnTextHeap) heap = kiln_text_heap_new();
    const KilnText *text;
    char *bytes;
    kiln_text_heap_limit(heap, 4096);
    cr_expect(kiln_text_new_copy(heap, "a", 1, &text));
    cr_expect_not(kiln_text_new(heap, 5000, &text, &bytes));
    cr_expect_null(text);
    g_autoptr(GError) error = kiln_text_heap_take_error(heap);
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_LIMIT));
    cr_expect_null(kiln_text_heap_take_error(heap));
    cr_expect_not(kiln_text_new(heap, SIZE_MAX, &text, &bytes));
    kiln_text_heap_reset(heap);
    cr_expect(kiln_text_new_copy(heap, "a", 1, &text));
}

/* --- tensors --- */

static const KilnType pair = { .dtype = KILN_DTYPE_string, .rank = 1, .dims = { 2 } };

Test(texts, tensors_own_their_texts)
{
    char bytes[] = "xy";
    const KilnText first = { bytes, 1 }, second = { bytes + 1, 1 };
    const KilnText *const elements[] = { &first, &second };
    g_autoptr(KilnTensor) tensor = kiln_tensor_new_copy(&pair, elements, NULL);
    bytes[0] = '?';
    g_autoptr(KilnTensor) listed =
        kiln_tensor_new_texts(&pair, (const KilnText[]){ { "x", 1 }, { "y", 1 } }, 2, NULL);
    cr_expect(kiln_tensor_equal(tensor, listed));
    g_autoptr(GBytes) stored = kiln_tensor_stored(tensor, NULL);
    g_autoptr(KilnTensor) loaded = kiln_tensor_new_stored(&pair, stored, NULL);
    cr_expect(kiln_tensor_equal(tensor, loaded));
    cr_expect_eq(kiln_tensor_stored_bytes(&pair), -1);
}

Test(texts, equal_elements_are_a_splat)
{
    const KilnText *const elements[] = { &ab, &(const KilnText){ "ab", 2 } };
    uint8_t element[8];
    KilnTensor *tensor = kiln_tensor_new_copy(&pair, elements, NULL);
    cr_expect(kiln_tensor_is_splat(tensor, 8, element));
    g_autoptr(KilnTensor) splat = kiln_tensor_compact(tensor);
    cr_assert_eq(splat->kind, KILN_TENSOR_SPLAT);
    cr_expect_eq(kiln_tensor_storage(splat), 0);
    GBytes *view = kiln_tensor_view(splat, NULL);
    g_autoptr(KilnTensor) copy = kiln_tensor_copy(splat);
    g_clear_pointer(&splat, kiln_tensor_free);
    const KilnText *const *found = g_bytes_get_data(view, NULL); /* which holds the texts */
    cr_expect(kiln_text_equal(found[0], &ab) && kiln_text_equal(found[1], &ab));
    g_autoptr(KilnTensor) again = kiln_tensor_new_data(&pair, view, NULL);
    g_bytes_unref(view);
    cr_expect(kiln_tensor_equal(copy, again));
    g_autoptr(KilnTensor) blank = kiln_tensor_new_splat(&pair, 0);
    cr_expect_not(kiln_tensor_equal(copy, blank));
}

/* Splats of a million strings take no memory for each, and keep their text where memory is out. */
Test(texts, splats_are_not_spread_out)
{
    const KilnType million = { .dtype = KILN_DTYPE_string, .rank = 1, .dims = { 1000000 } };
    const KilnText *element = &ab, *other = &a;
    const KilnLimits limits = { .bytes = 1 };
    g_autoptr(KilnBudget) budget = kiln_budget_new(&limits);
    KilnBudget *before = kiln_budget_enter(budget);
    g_autoptr(KilnTensor) x = kiln_tensor_new_splat_bits(&million, &element);
    g_autoptr(KilnTensor) y = kiln_tensor_new_splat_bits(&million, &element);
    g_autoptr(KilnTensor) z = kiln_tensor_new_splat_bits(&million, &other);
    const uint64_t calls = kiln_alloc_count();
    cr_expect(kiln_tensor_equal(x, y));
    cr_expect_not(kiln_tensor_equal(x, z));
    cr_expect_eq(kiln_alloc_count(), calls);
    kiln_budget_leave(before);
    const KilnText *text;
    memcpy(&text, x->splat, sizeof text);
    cr_expect(kiln_text_equal(text, &ab));
}

/* A view has one text, and one block. */
Test(texts, views_of_splats_share_the_text)
{
    const KilnText *element = &ab;
    g_autoptr(KilnTensor) splat = kiln_tensor_new_splat_bits(&pair, &element);
    const uint64_t calls = kiln_alloc_count();
    g_autoptr(GBytes) view = kiln_tensor_view(splat, NULL);
    cr_expect_eq(kiln_alloc_count(), calls + 1);
    const KilnText *const *found = g_bytes_get_data(view, NULL);
    cr_expect_eq(found[0], found[1]);
    g_autoptr(KilnTensor) data = kiln_tensor_new_data(&pair, view, NULL);
    cr_expect(kiln_tensor_equal(data, splat) && kiln_tensor_equal(splat, data));
}

Test(texts, tensors_refuse_what_is_no_string)
{
    g_autoptr(GError) error = NULL;
    cr_expect_null(kiln_tensor_new_texts(&pair, (const KilnText[]){ a, bad }, 2, &error));
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_FORMAT));
    cr_expect(strstr(error->message, "expected UTF-8, found other bytes in element 1"), "%s",
              error->message);
    g_clear_error(&error);
    cr_expect_null(kiln_tensor_new_texts(&pair, &a, 1, &error));
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_SHAPE));
}
