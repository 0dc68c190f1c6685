/* SPDX-License-Identifier: Apache-2.0 */
/* Items: owners, parts that sequences share, types, and tensors that hold one. */
#include "graph/base/alloc.h"
#include "graph/base/item.h"
#include "graph/error.h"
#include "graph/kiln-items.h"
#include "graph/tensor.h"
#include "graph/texts.h"

#include <criterion/criterion.h>

static KilnItem *
number(KilnTextHeap *heap, float value)
{
    const KilnType type = kiln_type_scalar(KILN_DTYPE_f32);
    return kiln_item_make_copy(heap, &type, &value);
}

/* "1 2 3": the numbers of a sequence. */
static char *
text_of(const KilnItem *sequence)
{
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < kiln_item_length(sequence); i++) {
        const float *value = kiln_item_data(kiln_item_get(sequence, i));
        g_string_append_printf(text, "%s%g", i ? " " : "", (double)*value);
    }
    return g_string_free(text, FALSE);
}

static void
expect(const KilnItem *sequence, const char *expected)
{
    g_autofree char *text = text_of(sequence);
    cr_expect_str_eq(text, expected);
}

Test(items, sequences_share_lists)
{
    g_autoptr(KilnTextHeap) heap = kiln_text_heap_new();
    KilnItem *one = number(heap, 1), *two = number(heap, 2), *three = number(heap, 3);
    KilnItem *a = kiln_item_insert(heap, NULL, 0, one);
    KilnItem *b = kiln_item_insert(heap, a, 1, two);
    KilnItem *c = kiln_item_insert(heap, b, 2, three);
    KilnItem *other = kiln_item_insert(heap, b, 2, one); /* the list has another third item */
    KilnItem *middle = kiln_item_insert(heap, c, 1, three);
    expect(a, "1");
    expect(b, "1 2");
    expect(c, "1 2 3");
    expect(other, "1 2 1");
    expect(middle, "1 3 2 3");
    expect(kiln_item_erase(heap, c, 0), "2 3");
    expect(kiln_item_erase(heap, c, 1), "1 3");
    expect(kiln_item_erase(heap, c, 2), "1 2");
    expect(kiln_item_insert(heap, kiln_item_erase(heap, c, 0), 2, two), "2 3 2");
    expect(kiln_item_insert(heap, kiln_item_erase(heap, c, 2), 2, one), "1 2 1");
    expect(kiln_item_erase(heap, a, 0), "");
}

/* A queue that never has more than three items needs no more memory after any number of steps. */
Test(items, a_queue_stays_small)
{
    g_autoptr(KilnTextHeap) heap = kiln_text_heap_new();
    KilnItem *queue = NULL;
    kiln_text_heap_limit(heap, 16 * 1024);
    for (int i = 0; i < 100000; i++) {
        queue = kiln_item_insert(heap, queue, kiln_item_length(queue), number(heap, (float)i));
        if (kiln_item_length(queue) > 3)
            queue = kiln_item_erase(heap, queue, 0);
        cr_assert(queue, "step %d", i);
        kiln_item_ref(queue);
        kiln_item_drop(heap, 0);
        cr_assert(kiln_item_give(heap, queue));
    }
    cr_expect_eq(kiln_item_mark(heap), 1);
    expect(queue, "99997 99998 99999");
}

Test(items, a_heap_has_a_limit)
{
    g_autoptr(KilnTextHeap) heap = kiln_text_heap_new();
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 1000 });
    void *data;
    kiln_text_heap_limit(heap, 10000);
    cr_assert(kiln_item_make_tensor(heap, &type, &data));
    cr_expect(kiln_item_make_tensor(heap, &type, &data));
    cr_expect_null(kiln_item_make_tensor(heap, &type, &data));
    g_autoptr(GError) error = kiln_text_heap_take_error(heap);
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_LIMIT));
    kiln_text_heap_reset(heap);
    cr_expect(kiln_item_make_tensor(heap, &type, &data));
}

/* Every allocation of an item may fail. */
Test(items, no_memory)
{
    for (unsigned n = 1; n < 12; n++) {
        g_autoptr(KilnTextHeap) heap = kiln_text_heap_new();
        kiln_alloc_inject_failure(n);
        KilnItem *one = number(heap, 1);
        KilnItem *a = one ? kiln_item_insert(heap, NULL, 0, one) : NULL;
        KilnItem *b = a ? kiln_item_insert(heap, a, 0, one) : NULL;
        kiln_alloc_inject_failure(0);
        g_autoptr(GError) error = kiln_text_heap_take_error(heap);
        cr_expect(b ? !error : g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY), "%u", n);
    }
}

static KilnItem *
tensor(KilnDType dtype, int rank, int64_t a, int64_t b, const void *data)
{
    const int64_t dims[] = { a, b };
    KilnItem *item = kiln_item_new_tensor(dtype, rank, dims, data, NULL);
    cr_assert(item);
    return item;
}

Test(items, of_callers)
{
    const float values[] = { 1, 2, 3, 4, 5, 6 };
    const int64_t numbers[] = { 7, 8 };
    g_autoptr(KilnItem) x = tensor(KILN_DTYPE_f32, 2, 2, 3, values);
    g_autoptr(KilnItem) y = tensor(KILN_DTYPE_f32, 2, 1, 3, values);
    g_autoptr(KilnItem) keys = tensor(KILN_DTYPE_i64, 1, 2, 0, numbers);
    g_autoptr(KilnItem) two = tensor(KILN_DTYPE_f32, 1, 2, 0, values);
    g_autoptr(KilnItem) sequence = kiln_item_new_sequence((KilnItem *[]){ x, y }, 2, NULL);
    g_autoptr(KilnItem) same = kiln_item_new_sequence((KilnItem *[]){ x, y }, 2, NULL);
    g_autoptr(KilnItem) optional = kiln_item_new_optional(sequence, NULL);
    g_autoptr(KilnItem) none = kiln_item_new_optional(NULL, NULL);
    g_autoptr(KilnItem) map = kiln_item_new_map(keys, two, NULL);
    int rank;
    cr_expect_eq(kiln_item_length(sequence), 2);
    cr_expect_eq(kiln_item_dims(kiln_item_get(sequence, 1), &rank)[0], 1);
    cr_expect_eq(rank, 2);
    cr_expect(kiln_item_equal(sequence, same));
    cr_expect_not(kiln_item_equal(sequence, optional));
    cr_expect(kiln_item_equal(none, NULL));
    cr_expect_eq(kiln_item_dtype(map), KILN_DTYPE_map);
    cr_expect_null(kiln_item_new_map(keys, x, NULL));
    cr_expect_null(kiln_item_new_sequence((KilnItem *[]){ x, keys }, 2, NULL));
    cr_expect_null(kiln_item_new_optional(optional, NULL));
    cr_expect_null(kiln_item_new_tensor(KILN_DTYPE_map, 0, NULL, NULL, NULL));
    cr_expect_null(kiln_item_new_tensor(KILN_DTYPE_f32, 1, (int64_t[]){ -1 }, NULL, NULL));
    cr_expect_null(kiln_item_new_tensor(KILN_DTYPE_f32, 9, (int64_t[9]){ 1 }, values, NULL));
}

static void
expect_type(const KilnItem *item, const char *expected)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    const KilnType type = kiln_item_full_type(item, arena);
    g_autofree char *text = kiln_type_to_string(&type);
    cr_expect_str_eq(text, expected);
}

Test(items, types)
{
    const float values[6] = { 0 };
    const int64_t numbers[] = { 7, 8 };
    g_autoptr(KilnItem) x = tensor(KILN_DTYPE_f32, 2, 2, 3, values);
    g_autoptr(KilnItem) y = tensor(KILN_DTYPE_f32, 2, 1, 3, values);
    g_autoptr(KilnItem) z = tensor(KILN_DTYPE_f32, 1, 2, 0, values);
    g_autoptr(KilnItem) keys = tensor(KILN_DTYPE_i64, 1, 2, 0, numbers);
    g_autoptr(KilnItem) sequence = kiln_item_new_sequence((KilnItem *[]){ x, y }, 2, NULL);
    g_autoptr(KilnItem) mixed = kiln_item_new_sequence((KilnItem *[]){ x, z }, 2, NULL);
    g_autoptr(KilnItem) empty = kiln_item_new_sequence(NULL, 0, NULL);
    g_autoptr(KilnItem) optional = kiln_item_new_optional(sequence, NULL);
    g_autoptr(KilnItem) map = kiln_item_new_map(keys, z, NULL);
    expect_type(sequence, "sequence(f32[?,3])");
    expect_type(mixed, "sequence(f32[*])");
    expect_type(empty, "sequence(f32[-])");
    expect_type(optional, "optional(sequence(f32[?,3]))");
    expect_type(map, "map(i64,f32)");
    cr_expect_eq(kiln_item_element_rank(optional), 2);
    cr_expect_eq(kiln_item_element_rank(mixed), KILN_RANK_UNKNOWN);
    cr_expect_eq(kiln_item_element_rank(empty), KILN_RANK_NONE);
    cr_expect_eq(kiln_item_element_rank(NULL), KILN_RANK_NONE);
}

Test(items, are_checked)
{
    const float values[6] = { 0 };
    g_autoptr(KilnArena) arena = kiln_arena_new();
    g_autoptr(KilnItem) x = tensor(KILN_DTYPE_f32, 2, 2, 3, values);
    g_autoptr(KilnItem) sequence = kiln_item_new_sequence(&x, 1, NULL);
    const int64_t dims[] = { -1, 4 };
    const KilnType fits = kiln_type_make(KILN_DTYPE_f32, 1, dims),
                   four = kiln_type_make(KILN_DTYPE_f32, 2, dims);
    const KilnType any = kiln_type_unranked(KILN_DTYPE_f32);
    const KilnType of_any = kiln_type_of_items(arena, KILN_DTYPE_sequence, &any),
                   of_four = kiln_type_of_items(arena, KILN_DTYPE_sequence, &four),
                   optional = kiln_type_of_items(arena, KILN_DTYPE_optional, &any);
    g_autoptr(GError) error = NULL;
    cr_expect(kiln_item_check(sequence, &of_any, "input s", NULL));
    cr_expect(kiln_item_check(NULL, &of_four, "input s", NULL));
    cr_expect_not(kiln_item_check(sequence, &optional, "input s", NULL));
    cr_expect_not(kiln_item_check(x, &fits, "input s", NULL));
    cr_expect_not(kiln_item_check(sequence, &of_four, "input s", &error));
    cr_expect(g_error_matches(error, KILN_ERROR, KILN_ERROR_SHAPE));
    cr_expect_str_eq(error->message, "input s: item 0: expected f32[?,4], found f32[2,3]");
}

Test(items, tensors_own_them)
{
    const KilnText ab = { "ab", 2 }, *const texts[] = { &ab, NULL };
    KilnItem *words = kiln_item_new_tensor(KILN_DTYPE_string, 1, (int64_t[]){ 2 }, texts, NULL);
    const KilnType type = { .dtype = KILN_DTYPE_sequence };
    KilnItem *sequence = kiln_item_new_sequence(&words, 1, NULL);
    g_autoptr(KilnTensor) a = kiln_tensor_new_item(&type, sequence);
    g_autoptr(KilnTensor) b = kiln_tensor_new_copy(&type, &sequence, NULL);
    kiln_item_unref(words);
    kiln_item_unref(sequence);
    cr_expect(kiln_tensor_equal(a, b));
    cr_expect_eq(kiln_tensor_item(a), kiln_tensor_item(b));
    const KilnText *const *kept = kiln_item_data(kiln_item_get(kiln_tensor_item(a), 0));
    cr_expect(kiln_text_equal(kept[0], &ab));
    cr_expect(kiln_text_equal(kept[1], NULL));
}
