/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of orders, against all orders that there are. */
#include "ir/plan/place_tree.h"

#include <criterion/criterion.h>
#include <math.h>

enum {
    N = 6
};

typedef struct {
    KilnOrderStore store;
    uint32_t sets[8], n_sets; /* masks of leaves that lie side by side */
    uint64_t state;
} Fixture;

static uint32_t
random_below(Fixture *f, uint32_t n)
{
    f->state = f->state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(f->state >> 33) % n;
}

static KilnOrder *
leaf(Fixture *f, uint32_t i)
{
    return kiln_order_leaf(&f->store, i, i + 1);
}

static KilnOrder *
any_order(Fixture *f)
{
    KilnOrder *leaves[N];
    for (uint32_t i = 0; i < N; i++)
        leaves[i] = leaf(f, i);
    return kiln_order_any(&f->store, leaves, N);
}

static KilnOrder *
join(Fixture *f, KilnOrder *order, uint32_t mask)
{
    for (uint32_t i = 0; i < N; i++)
        f->store.groups[i] = mask >> i & 1;
    KilnOrder *joined = kiln_order_join(&f->store, order, 1, (uint32_t)__builtin_popcount(mask));
    for (uint32_t i = 0; i < N; i++)
        f->store.groups[i] = 0;
    return joined;
}

/* True where @places, of each leaf, is one of the orders of @node. */
static bool
allows(const KilnOrder *node, const uint32_t *places, uint32_t *out_first, uint32_t *out_last)
{
    if (node->kind == KILN_ORDER_LEAF) {
        *out_first = *out_last = places[node->leaf];
        return true;
    }
    uint32_t before = 0, rises = 0, n = 0;
    *out_first = UINT32_MAX;
    *out_last = 0;
    for (uint32_t c = 0; c < node->n; c++) {
        uint32_t first, last;
        if (!allows(node->children[c], places, &first, &last))
            return false;
        rises += c > 0 && first > before;
        before = first;
        *out_first = MIN(*out_first, first);
        *out_last = MAX(*out_last, last);
        n += node->children[c]->leaves;
    }
    cr_assert_eq(n, node->leaves);
    bool in_line = node->kind != KILN_ORDER_LINE || rises == 0 || rises + 1 == node->n;
    return in_line && *out_last - *out_first + 1 == node->leaves;
}

static bool
are_side_by_side(const uint32_t *places, uint32_t mask)
{
    uint32_t first = N, last = 0;
    for (uint32_t i = 0; i < N; i++) {
        if (mask >> i & 1) {
            first = MIN(first, places[i]);
            last = MAX(last, places[i]);
        }
    }
    return last - first + 1 == (uint32_t)__builtin_popcount(mask);
}

/* Compares @order, or NULL, with all orders of N leaves; returns how many keep the sets. */
static uint32_t
compare(const Fixture *f, const KilnOrder *order)
{
    uint32_t places[N], kept = 0, total = 1;
    for (uint32_t i = 2; i <= N; i++)
        total *= i;
    for (uint32_t k = 0; k < total; k++) {
        uint32_t rest = k, free_places[N];
        for (uint32_t i = 0; i < N; i++)
            free_places[i] = i;
        for (uint32_t i = 0; i < N; i++) {
            uint32_t at = rest % (N - i);
            rest /= N - i;
            places[i] = free_places[at];
            free_places[at] = free_places[N - 1 - i];
        }
        bool keeps = true;
        for (uint32_t s = 0; s < f->n_sets; s++)
            keeps = keeps && are_side_by_side(places, f->sets[s]);
        uint32_t first, last;
        cr_assert_eq(order && allows(order, places, &first, &last), keeps);
        kept += keeps;
    }
    return kept;
}

Test(place_tree, joins_keep_what_they_must)
{
    uint32_t n_impossible = 0, n_lines = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        Fixture f = { .state = seed };
        kiln_order_store_init(&f.store, N);
        KilnOrder *order = any_order(&f);
        while (order && f.n_sets < G_N_ELEMENTS(f.sets)) {
            uint32_t mask = 1 + random_below(&f, (1 << N) - 1);
            f.sets[f.n_sets++] = mask;
            order = join(&f, order, mask);
            uint32_t kept = compare(&f, order);
            if (order) /* the logarithm counts them */
                cr_assert_float_eq((double)order->freedom / 65536, log2(kept), 1e-2);
            n_impossible += !order;
            n_lines += order && order->kind == KILN_ORDER_LINE;
        }
        kiln_order_store_clear(&f.store);
    }
    cr_expect_gt(n_impossible, 100);
    cr_expect_gt(n_lines, 20);
}

/* The hash is that of the set of orders, not of the way to it. */
Test(place_tree, hashes)
{
    Fixture f = { 0 };
    kiln_order_store_init(&f.store, N);
    KilnOrder *one = join(&f, join(&f, any_order(&f), 0x7), 0x1c);
    KilnOrder *other = join(&f, join(&f, any_order(&f), 0x1c), 0x7);
    cr_assert_eq(one->hash, other->hash);
    cr_assert_neq(one->hash, join(&f, any_order(&f), 0x7)->hash);
    KilnOrder *copy = kiln_order_copy(&f.store, one);
    cr_assert(copy != one && copy->hash == one->hash && copy->freedom == one->freedom);
    kiln_order_store_clear(&f.store);
}

/* Leaves 0 to 2 lie side by side, and 3 takes their place. */
Test(place_tree, replaces_groups)
{
    Fixture f = { 0 };
    kiln_order_store_init(&f.store, N);
    KilnOrder *leaves[] = { leaf(&f, 0), leaf(&f, 1), leaf(&f, 2), leaf(&f, 4), leaf(&f, 5) };
    KilnOrder *order = kiln_order_any(&f.store, leaves, G_N_ELEMENTS(leaves));
    order = join(&f, join(&f, order, 0x7), 0x14); /* 2 lies beside 4 */
    KilnOrder *replacements[] = { NULL, leaf(&f, 3) };
    for (uint32_t i = 0; i < 3; i++)
        f.store.groups[i] = 1;
    order = kiln_order_replace(&f.store, order, replacements);
    cr_assert_eq(order->leaves, 3);
    uint32_t first, last, beside[N] = { [3] = 1, [4] = 0, [5] = 2 };
    uint32_t apart[N] = { [3] = 0, [4] = 2, [5] = 1 };
    cr_assert(allows(order, beside, &first, &last));
    cr_assert_not(allows(order, apart, &first, &last));
    kiln_order_store_clear(&f.store);
}

/* What was made before the place that is gone back to stays as it was. */
Test(place_tree, rewinds)
{
    Fixture f = { 0 };
    kiln_order_store_init(&f.store, N);
    KilnOrder *order = join(&f, any_order(&f), 0x7);
    uint64_t hash = order->hash;
    size_t block = f.store.block, used = f.store.used;
    KilnOrder *first = leaf(&f, 0);
    for (int i = 0; i < 10000; i++) /* more than one block */
        join(&f, order, 0x18);
    cr_assert_gt(f.store.block, block);
    kiln_order_store_rewind(&f.store, block, used);
    cr_assert_eq(leaf(&f, 0), first); /* the same place */
    cr_assert_eq(order->hash, hash);
    cr_assert_eq(join(&f, any_order(&f), 0x7)->hash, hash);
    kiln_order_store_clear(&f.store);
}
