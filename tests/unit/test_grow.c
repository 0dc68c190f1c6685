/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of graph/grow against simple models of them, and what refused requests do. */
#include "graph/base/write_file.h"
#include "graph/grow/reserve.h"
#include "graph/kiln-types.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

enum {
    STEPS = 20000,
    KEYS = 600,
};

static uint32_t
draw(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % n;
}

/* Keys that collide: eight hashes for all. */
static guint
few_hashes(gconstpointer key)
{
    return GPOINTER_TO_UINT(key) % 8;
}

/* Inserts, removes and looks up against an array of what must be there. */
static void
exercise_table(GHashFunc hash)
{
    g_autoptr(GHashTable) table = g_hash_table_new(hash, NULL);
    uintptr_t there[KEYS] = { 0 }; /* value; 0: not there */
    guint n = 0;
    uint32_t state = 7;
    for (int i = 1; i <= STEPS; i++) {
        uint32_t k = draw(&state, KEYS);
        gpointer key = GUINT_TO_POINTER(k * 64);
        if (draw(&state, 3)) {
            cr_assert_eq(g_hash_table_insert(table, key, (gpointer)(uintptr_t)i), !there[k]);
            n += !there[k];
            there[k] = (uintptr_t)i;
        } else {
            cr_assert_eq(g_hash_table_remove(table, key), there[k] != 0);
            n -= there[k] != 0;
            there[k] = 0;
        }
        cr_assert_eq(g_hash_table_size(table), n);
        uint32_t other = draw(&state, KEYS);
        cr_assert_eq((uintptr_t)g_hash_table_lookup(table, GUINT_TO_POINTER(other * 64)),
                     there[other]);
    }
    guint walked = 0;
    GHashTableIter iter;
    gpointer key, value;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        cr_assert_eq((uintptr_t)value, there[GPOINTER_TO_UINT(key) / 64]);
        walked++;
    }
    cr_assert_eq(walked, n);
}

Test(grow, tables)
{
    exercise_table(NULL);
    exercise_table(few_hashes);
}

static int freed;

static void
count_freed(gpointer text)
{
    freed++;
    g_free(text);
}

static gboolean
is_odd(gpointer key, gpointer value, gpointer data)
{
    (void)key;
    (void)data;
    return GPOINTER_TO_INT(value) % 2;
}

Test(grow, tables_own_their_keys)
{
    freed = 0;
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, count_freed, NULL);
    cr_assert(g_hash_table_insert(table, g_strdup("a"), GINT_TO_POINTER(1)));
    cr_assert(!g_hash_table_insert(table, g_strdup("a"), GINT_TO_POINTER(2)),
              "the new key is freed");
    cr_assert_eq(freed, 1);
    cr_assert(!g_hash_table_replace(table, g_strdup("a"), GINT_TO_POINTER(3)),
              "and now the old one");
    cr_assert_eq(freed, 2);
    cr_assert_eq(GPOINTER_TO_INT(g_hash_table_lookup(table, "a")), 3);
    gpointer key, value;
    cr_assert(g_hash_table_lookup_extended(table, "a", &key, &value));
    cr_assert_str_eq(key, "a");
    cr_assert(!g_hash_table_lookup_extended(table, "b", NULL, NULL));
    g_hash_table_insert(table, g_strdup("b"), GINT_TO_POINTER(4));
    cr_assert_eq(g_hash_table_foreach_remove(table, is_odd, NULL), 1);
    cr_assert(!g_hash_table_contains(table, "a") && g_hash_table_contains(table, "b"));
    g_hash_table_remove_all(table);
    cr_assert_eq(g_hash_table_size(table), 0);
    cr_assert(g_hash_table_add(table, g_strdup("c")));
    cr_assert(!g_hash_table_add(table, g_strdup("c")));
    g_hash_table_unref(table);
    cr_assert_eq(freed, 6);
}

/* What is walked keeps the order of insertion, whatever addresses and hashes are. */
Test(grow, tables_are_walked_in_order)
{
    g_autoptr(GHashTable) table = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < 1000; i++)
        g_hash_table_insert(table, GUINT_TO_POINTER((i * 7919) % 1009 + 1), GUINT_TO_POINTER(i));
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, table);
    for (guint i = 0; g_hash_table_iter_next(&iter, NULL, &value); i++)
        cr_assert_eq(GPOINTER_TO_UINT(value), i);
}

static gint
by_number(gconstpointer a, gconstpointer b, gpointer data)
{
    (*(int *)data)++;
    return GPOINTER_TO_INT(a) - GPOINTER_TO_INT(b);
}

Test(grow, trees)
{
    int compared = 0;
    GTree *tree = g_tree_new_full(by_number, &compared, NULL, NULL);
    bool there[KEYS] = { false };
    gint n = 0;
    uint32_t state = 11;
    for (int i = 0; i < STEPS; i++) {
        uint32_t k = draw(&state, KEYS);
        gpointer key = GUINT_TO_POINTER(k);
        if (draw(&state, 2)) {
            g_tree_insert(tree, key, NULL);
            n += !there[k];
            there[k] = true;
        } else {
            cr_assert_eq(g_tree_remove(tree, key), there[k]);
            n -= there[k];
            there[k] = false;
        }
        cr_assert_eq(g_tree_nnodes(tree), n);
        uint32_t least = draw(&state, KEYS), above = least;
        while (above < KEYS && !there[above])
            above++;
        int below = (int)least - 1;
        while (below >= 0 && !there[below])
            below--;
        GTreeNode *bound = g_tree_lower_bound(tree, GUINT_TO_POINTER(least));
        cr_assert_eq(bound ? GPOINTER_TO_UINT(g_tree_node_key(bound)) : KEYS, above);
        GTreeNode *previous = bound ? g_tree_node_previous(bound) : g_tree_node_last(tree);
        cr_assert_eq(previous ? GPOINTER_TO_INT(g_tree_node_key(previous)) : -1, below);
    }
    compared = 0;
    for (int i = 0; i < 100000; i++)
        g_tree_insert(tree, GINT_TO_POINTER(i), NULL);
    cr_assert_lt(compared, 100000 * 60, "sorted keys make no list of it");
    cr_assert_eq(GPOINTER_TO_INT(g_tree_node_key(g_tree_node_first(tree))), 0);
    g_tree_unref(tree);
}

typedef struct {
    int key, place;
    char rest[12];
} Item;

static gint
by_key(gconstpointer a, gconstpointer b, gpointer data)
{
    (void)data;
    return ((const Item *)a)->key - ((const Item *)b)->key;
}

Test(grow, sorts_are_stable)
{
    uint32_t state = 3;
    for (guint n = 0; n < 300; n++) {
        g_autoptr(GArray) items = g_array_new(FALSE, TRUE, sizeof(Item));
        for (guint i = 0; i < n; i++) {
            Item item = { .key = (int)draw(&state, 20), .place = (int)i };
            g_array_append_val(items, item);
        }
        g_array_sort_with_data(items, by_key, NULL);
        for (guint i = 1; i < n; i++) {
            const Item *a = &g_array_index(items, Item, i - 1), *b = &g_array_index(items, Item, i);
            cr_assert(a->key < b->key || (a->key == b->key && a->place < b->place));
        }
    }
}

Test(grow, lists)
{
    freed = 0;
    GPtrArray *list = g_ptr_array_new_with_free_func(count_freed);
    for (int i = 0; i < 10; i++)
        g_ptr_array_add(list, g_strdup_printf("%d", i));
    g_ptr_array_insert(list, 0, g_strdup("first"));
    g_ptr_array_insert(list, -1, g_strdup("last"));
    cr_assert_str_eq(g_ptr_array_index(list, 0), "first");
    cr_assert_str_eq(g_ptr_array_index(list, 11), "last");
    g_ptr_array_remove_range(list, 1, 3);
    cr_assert_eq(freed, 3);
    cr_assert_str_eq(g_ptr_array_index(list, 1), "3");
    g_free(g_ptr_array_steal_index(list, 0));
    g_ptr_array_set_size(list, 2);
    cr_assert_eq(freed, 9);
    g_ptr_array_set_size(list, 4);
    cr_assert_null(g_ptr_array_index(list, 3));
    gpointer *left = g_ptr_array_free(list, FALSE);
    cr_assert_str_eq(left[1], "4");
    g_free(left[0]);
    g_free(left[1]);
    g_free(left);
}

Test(grow, texts)
{
    g_autoptr(GString) text = g_string_new("a");
    for (int i = 0; i < 200; i++)
        g_string_append_printf(text, "%0*d", i, 1);
    cr_assert_eq(text->len, 1 + 1 + 199 * 200 / 2);
    cr_assert_eq(strlen(text->str), text->len);
    g_string_assign(text, "one two two");
    cr_assert_eq(g_string_replace(text, "two", "three", 1), 1);
    g_string_insert(text, 0, "> ");
    g_string_erase(text, -1 + 3, 0);
    cr_assert_str_eq(text->str, "> one three two");
    static const struct {
        const char *text, *delimiter;
        gint limit;
        const char *joined;
    } splits[] = {
        { "", ",", -1, "" },
        { "a", ",", -1, "a" },
        { ",", ",", -1, "|" },
        { "a,b,,c,", ",", -1, "a|b||c|" },
        { "a, b, c", ", ", 2, "a|b, c" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(splits); i++) {
        g_auto(GStrv) parts = g_strsplit(splits[i].text, splits[i].delimiter, splits[i].limit);
        g_autofree char *joined = g_strjoinv("|", parts);
        cr_assert_str_eq(joined, splits[i].joined);
        cr_assert_eq(g_strv_length(parts) > 0, *splits[i].text != '\0');
    }
    g_autofree char *valid = g_utf8_make_valid("a\xff\xc3\xa4\xc3", -1);
    cr_assert_str_eq(valid, "a\357\277\275\xc3\xa4\357\277\275");
    g_autofree char *joined = g_strconcat("a", "", "bc", NULL);
    cr_assert_str_eq(joined, "abc");
}

/* --- memory that runs out --- */

/* Every request of what @exercise does is refused once: it does the same. */
static void
refuse_each(void (*exercise)(GString *out))
{
    g_autoptr(GString) expected = g_string_new(NULL), found = g_string_sized_new(1 << 16);
    cr_assert(kiln_reserve_hold(NULL));
    exercise(expected);
    size_t whole = kiln_reserve_size();
    bool refused = true;
    for (unsigned n = 1; refused; n++) {
        g_string_truncate(found, 0);
        kiln_reserve_inject_refusal(n);
        exercise(found);
        kiln_reserve_inject_refusal(0);
        refused = kiln_reserve_is_touched();
        cr_assert(n < 10000);
        cr_assert_str_eq(found->str, expected->str, "request %u was refused", n);
        cr_assert_eq(kiln_reserve_size() < whole, refused);
        cr_assert(kiln_reserve_check_step(NULL));
        cr_assert_eq(kiln_reserve_size(), whole, "the checkpoint mapped it again");
    }
    kiln_reserve_release();
    cr_assert_eq(kiln_reserve_size(), 0);
}

static gint
by_pointer(gconstpointer a, gconstpointer b)
{
    uintptr_t x = (uintptr_t) * (gpointer const *)a, y = (uintptr_t) * (gpointer const *)b;
    return (x > y) - (x < y);
}

static void
grow_all(GString *out)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_autoptr(GArray) array = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GHashTable) table = g_hash_table_new(NULL, NULL);
    for (int i = 500; i > 0; i--) {
        g_ptr_array_add(list, GINT_TO_POINTER(i));
        g_array_append_val(array, i);
        g_hash_table_insert(table, GINT_TO_POINTER(i), GINT_TO_POINTER(i * i));
    }
    g_ptr_array_sort(list, by_pointer);
    g_autofree int *copy = g_memdup2(array->data, array->len * sizeof(int));
    for (int i = 0; i < 500; i++) {
        gpointer key = g_ptr_array_index(list, i);
        g_string_append_printf(out, "%d %d,", copy[i],
                               GPOINTER_TO_INT(g_hash_table_lookup(table, key)));
    }
}

Test(grow, refused_requests_lose_nothing)
{
    refuse_each(grow_all);
}

Test(grow, the_reserve_grows_with_the_model)
{
    cr_assert(kiln_reserve_hold(NULL));
    size_t base = kiln_reserve_size();
    cr_assert(kiln_reserve_check(100000, NULL));
    cr_assert_geq(kiln_reserve_size(), base + 100000 * 500);
    cr_assert(kiln_reserve_hold(NULL));
    kiln_reserve_release();
    cr_assert_geq(kiln_reserve_size(), base + 100000 * 500, "someone holds it");
    kiln_reserve_release();
}

/* A library that went on with less: this thread's next checkpoint says so, once. */
Test(grow, failures_of_libraries_end_at_the_next_checkpoint)
{
    cr_assert(kiln_reserve_hold(NULL));
    g_autoptr(GError) error = NULL;
    kiln_reserve_note_failure("a library");
    cr_assert(!kiln_reserve_check_step(&error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
    cr_assert_str_eq(error->message, "a library had no memory");
    cr_assert(kiln_reserve_check_step(NULL));
    kiln_reserve_release();
}

enum {
    PIECE = 4096
};

/* Both grow until a request for more than a megabyte is refused. */
static void
lose_both(GString *text, GByteArray *bytes)
{
    static const guint8 piece[PIECE];
    do {
        kiln_reserve_inject_refusal(text->len + PIECE >= KILN_LARGE_REQUEST);
        g_string_append_printf(text, "%*d", PIECE, 0);
    } while (text->len);
    do {
        kiln_reserve_inject_refusal(bytes->len + PIECE > KILN_LARGE_REQUEST);
        g_byte_array_append(bytes, piece, PIECE);
    } while (bytes->len);
    kiln_reserve_inject_refusal(0);
}

/* What no reserve is large enough for is lost. The checkpoint says so, and nothing is written. */
Test(grow, large_texts_and_bytes_are_lost)
{
    cr_assert(kiln_reserve_hold(NULL));
    size_t whole = kiln_reserve_size();
    g_autoptr(GString) text = g_string_new("before");
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    lose_both(text, bytes);
    cr_assert_eq(kiln_reserve_size(), whole, "it was not served from the reserve");
    cr_assert_str_eq(text->str, "");
    cr_assert_eq(bytes->len, 0);
    g_string_insert(text, 1000, "behind what is there");
    g_string_erase(text, 2000, 1);
    cr_assert_str_eq(text->str, "behind what is there");

    g_autoptr(GError) error = NULL;
    cr_assert(!kiln_file_write("/dev/null", text->str, text->len, &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_MEMORY));
    cr_assert_str_eq(error->message, "cannot allocate 2097152 bytes for an array");
    cr_assert(kiln_file_write("/dev/null", text->str, text->len, NULL), "it is said once");
    kiln_reserve_release();
}
