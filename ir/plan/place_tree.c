/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/plan/place_tree.h"

#include "graph/base/random.h"

#include <string.h>

static const size_t BLOCK = (size_t)1 << 18;

enum {
    NODE_WORK = 20, /* of making a node without children */
    ORDER_WORK = 2, /* of looking at one */
    UNIT_BITS = 16, /* of KilnOrder.freedom */
};

/* The logarithm of @n, in units, from integers alone: the same on every machine. */
static int64_t
logarithm(uint32_t n)
{
    int64_t whole = 31 - __builtin_clz(n), rest = 0;
    uint64_t share = ((uint64_t)n << 31) >> whole; /* 1 to 2, of which 2^31 is 1 */
    for (int bit = 0; bit < UNIT_BITS; bit++) {
        share = share * share >> 31;
        rest = rest * 2 + (share >> 32 != 0);
        if (share >> 32)
            share /= 2;
    }
    return whole * (1 << UNIT_BITS) + rest;
}

/* --- nodes --- */

void
kiln_order_store_init(KilnOrderStore *store, uint32_t n_leaves)
{
    *store = (KilnOrderStore){ .blocks = g_ptr_array_new_with_free_func(g_free),
                               .groups = g_new0(uint32_t, (size_t)n_leaves + 1),
                               .factorials = g_new0(int64_t, (size_t)n_leaves + 1),
                               .scratch = g_ptr_array_new() };
    for (uint32_t n = 2; n <= n_leaves; n++)
        store->factorials[n] = store->factorials[n - 1] + logarithm(n);
}

void
kiln_order_store_clear(KilnOrderStore *store)
{
    g_ptr_array_unref(store->blocks);
    g_ptr_array_unref(store->scratch);
    g_free(store->factorials);
    g_free(store->groups);
}

void
kiln_order_store_reset(KilnOrderStore *store)
{
    kiln_order_store_rewind(store, 0, 0);
}

void
kiln_order_store_rewind(KilnOrderStore *store, size_t block, size_t used)
{
    store->block = block;
    store->used = used;
}

static KilnOrder *
new_node(KilnOrderStore *store, KilnOrderKind kind, uint32_t n)
{
    size_t bytes = sizeof(KilnOrder) + n * sizeof(KilnOrder *);
    if (store->block < store->blocks->len && store->used + bytes > BLOCK) {
        store->block++;
        store->used = 0;
    }
    if (store->block == store->blocks->len)
        g_ptr_array_add(store->blocks, g_malloc(BLOCK));
    char *at = (char *)g_ptr_array_index(store->blocks, store->block) + store->used;
    KilnOrder *node = (KilnOrder *)(void *)at;
    store->used += bytes;
    store->work += NODE_WORK + n;
    *node = (KilnOrder){ .n = n, .kind = (unsigned)kind & 3 };
    return node;
}

/* What follows from the children. */
static void
sum_up(const KilnOrderStore *store, KilnOrder *node)
{
    uint64_t forward = 1, backward = 1, any = 0;
    node->freedom = node->kind == KILN_ORDER_LINE ? 1 << UNIT_BITS : store->factorials[node->n];
    for (uint32_t c = 0; c < node->n; c++) {
        const KilnOrder *child = node->children[c];
        node->leaves += child->leaves;
        node->freedom += child->freedom;
        any += kiln_random_mix(child->hash);
        forward = kiln_random_mix(forward * 3 + child->hash);
        backward = kiln_random_mix(backward * 3 + node->children[node->n - 1 - c]->hash);
    }
    node->hash = node->kind == KILN_ORDER_LINE ? kiln_random_mix(forward + backward)
                                               : kiln_random_mix(any + 5);
}

KilnOrder *
kiln_order_leaf(KilnOrderStore *store, uint32_t leaf, uint64_t hash)
{
    KilnOrder *node = new_node(store, KILN_ORDER_LEAF, 0);
    node->leaf = leaf;
    node->leaves = 1;
    node->hash = kiln_random_mix(hash);
    return node;
}

static KilnOrder *
new_inner(KilnOrderStore *store, KilnOrderKind kind, KilnOrder *const *children, uint32_t n)
{
    if (n == 1)
        return children[0];
    KilnOrder *node = new_node(store, n == 2 ? KILN_ORDER_ANY : kind, n);
    memcpy(node->children, children, n * sizeof *children);
    sum_up(store, node);
    return node;
}

KilnOrder *
kiln_order_any(KilnOrderStore *store, KilnOrder *const *children, uint32_t n)
{
    return new_inner(store, KILN_ORDER_ANY, children, n);
}

KilnOrder *
kiln_order_copy(KilnOrderStore *store, const KilnOrder *order)
{
    KilnOrder *copy = new_node(store, order->kind, order->n);
    *copy = *order;
    for (uint32_t c = 0; c < order->n; c++)
        copy->children[c] = kiln_order_copy(store, order->children[c]);
    return copy;
}

/* --- joining --- */

static bool
is_full(const KilnOrder *node)
{
    return node->marked == node->leaves;
}

static bool
is_partial(const KilnOrder *node)
{
    return node->marked && node->marked < node->leaves;
}

static uint32_t
mark(KilnOrderStore *store, KilnOrder *node, uint32_t group)
{
    if (node->kind == KILN_ORDER_LEAF)
        return node->marked = store->groups[node->leaf] == group;
    node->marked = 0;
    for (uint32_t c = 0; c < node->n; c++)
        node->marked += mark(store, node->children[c], group);
    store->work += ORDER_WORK + node->n;
    return node->marked;
}

/* A list on the scratch stack, from @begin on. */
static KilnOrder *const *
list_at(const KilnOrderStore *store, guint begin)
{
    return (KilnOrder *const *)(void *)(store->scratch->pdata + begin);
}

/* Makes one node of those children that are full, or of those that are empty; NULL without. */
static KilnOrder *
gather(KilnOrderStore *store, const KilnOrder *node, bool full)
{
    guint begin = store->scratch->len;
    for (uint32_t c = 0; c < node->n; c++) {
        KilnOrder *child = node->children[c];
        if (full ? is_full(child) : !child->marked)
            g_ptr_array_add(store->scratch, child);
    }
    uint32_t n = store->scratch->len - begin;
    KilnOrder *gathered = n ? new_inner(store, KILN_ORDER_ANY, list_at(store, begin), n) : NULL;
    g_ptr_array_set_size(store->scratch, (gint)begin);
    return gathered;
}

static void
push(KilnOrderStore *store, KilnOrder *node)
{
    if (node)
        g_ptr_array_add(store->scratch, node);
}

static void
reverse(KilnOrderStore *store, guint begin)
{
    gpointer *data = store->scratch->pdata;
    for (guint i = begin, k = store->scratch->len; i + 1 < k; i++) {
        gpointer swapped = data[--k];
        data[k] = data[i];
        data[i] = swapped;
    }
}

/* Pushes what @node, which is partial, becomes where all empty ones come before all full ones. */
static bool
push_line(KilnOrderStore *store, KilnOrder *node)
{
    if (node->kind == KILN_ORDER_ANY) {
        KilnOrder *partial = NULL;
        for (uint32_t c = 0; c < node->n; c++) {
            if (!is_partial(node->children[c]))
                continue;
            if (partial)
                return false;
            partial = node->children[c];
        }
        push(store, gather(store, node, false));
        if (partial && !push_line(store, partial))
            return false;
        push(store, gather(store, node, true));
        return true;
    }
    bool backward = is_full(node->children[0]) || !node->children[node->n - 1]->marked;
    bool met = false; /* a child that is not empty */
    for (uint32_t k = 0; k < node->n; k++) {
        KilnOrder *child = node->children[backward ? node->n - 1 - k : k];
        if (met && !is_full(child))
            return false;
        met = child->marked;
        if (!is_partial(child))
            push(store, child);
        else if (!push_line(store, child))
            return false;
    }
    return true;
}

/* @node is the lowest that has all marked leaves, and is of the kind "any". */
static KilnOrder *
join_any(KilnOrderStore *store, KilnOrder *node)
{
    KilnOrder *partial[2] = { NULL, NULL };
    uint32_t n_partial = 0;
    for (uint32_t c = 0; c < node->n; c++) {
        if (!is_partial(node->children[c]))
            continue;
        if (n_partial == 2)
            return NULL;
        partial[n_partial++] = node->children[c];
    }
    guint begin = store->scratch->len;
    if (partial[0] && !push_line(store, partial[0]))
        return NULL;
    push(store, gather(store, node, true));
    guint middle = store->scratch->len;
    if (partial[1] && !push_line(store, partial[1]))
        return NULL;
    reverse(store, middle);
    KilnOrder *joined =
        new_inner(store, KILN_ORDER_LINE, list_at(store, begin), store->scratch->len - begin);
    g_ptr_array_set_size(store->scratch, (gint)begin);
    for (uint32_t c = 0; c < node->n; c++) {
        if (!node->children[c]->marked)
            push(store, node->children[c]);
    }
    push(store, joined);
    joined = new_inner(store, KILN_ORDER_ANY, list_at(store, begin), store->scratch->len - begin);
    g_ptr_array_set_size(store->scratch, (gint)begin);
    return joined;
}

/* The same of the kind "line": empty ones, full ones, empty ones, and partial ones between. */
static KilnOrder *
join_line(KilnOrderStore *store, KilnOrder *node)
{
    guint begin = store->scratch->len;
    bool met = false, ended = false;
    for (uint32_t c = 0; c < node->n; c++) {
        KilnOrder *child = node->children[c];
        if (child->marked && ended)
            return NULL;
        if (is_partial(child)) {
            guint middle = store->scratch->len;
            if (!push_line(store, child))
                return NULL;
            if (met)
                reverse(store, middle);
        } else {
            push(store, child);
        }
        ended = ended || (met && !is_full(child));
        met = met || child->marked;
    }
    KilnOrder *joined =
        new_inner(store, KILN_ORDER_LINE, list_at(store, begin), store->scratch->len - begin);
    g_ptr_array_set_size(store->scratch, (gint)begin);
    return joined;
}

static KilnOrder *
with_child(KilnOrderStore *store, const KilnOrder *node, uint32_t at, KilnOrder *child)
{
    KilnOrder *copy = new_node(store, node->kind, node->n);
    memcpy(copy->children, node->children, node->n * sizeof *node->children);
    copy->children[at] = child;
    sum_up(store, copy);
    return copy;
}

static KilnOrder *
join_below(KilnOrderStore *store, KilnOrder *node, uint32_t n)
{
    if (is_full(node))
        return node;
    for (uint32_t c = 0; c < node->n; c++) {
        if (node->children[c]->marked != n)
            continue;
        KilnOrder *child = join_below(store, node->children[c], n);
        if (!child || child == node->children[c])
            return child ? node : NULL;
        return with_child(store, node, c, child);
    }
    return node->kind == KILN_ORDER_ANY ? join_any(store, node) : join_line(store, node);
}

KilnOrder *
kiln_order_join(KilnOrderStore *store, KilnOrder *order, uint32_t group, uint32_t n)
{
    if (n < 2)
        return order;
    guint begin = store->scratch->len;
    mark(store, order, group);
    KilnOrder *joined = join_below(store, order, n);
    g_ptr_array_set_size(store->scratch, (gint)begin);
    return joined;
}

/* --- replacing --- */

enum {
    MIXED = -1
};

/* What @node becomes; *@out_group is the group of all its leaves, or 0: of none, or mixed. */
static KilnOrder *
replace(KilnOrderStore *store, KilnOrder *node, KilnOrder *const *replacements, int64_t *out_group)
{
    if (node->kind == KILN_ORDER_LEAF) {
        *out_group = store->groups[node->leaf];
        return *out_group ? replacements[*out_group] : node;
    }
    guint begin = store->scratch->len;
    int64_t last = 0;
    bool changed = false;
    for (uint32_t c = 0; c < node->n; c++) {
        int64_t group = 0;
        KilnOrder *child = replace(store, node->children[c], replacements, &group);
        changed = changed || child != node->children[c];
        if (group <= 0 || group != last || store->scratch->len == begin)
            g_ptr_array_add(store->scratch, child);
        *out_group = c == 0 || group == *out_group ? group : MIXED;
        last = group;
    }
    KilnOrder *replaced = node;
    if (*out_group > 0)
        replaced = replacements[*out_group];
    else if (changed)
        replaced = new_inner(store, node->kind, list_at(store, begin), store->scratch->len - begin);
    g_ptr_array_set_size(store->scratch, (gint)begin);
    store->work += ORDER_WORK + node->n;
    return replaced;
}

KilnOrder *
kiln_order_replace(KilnOrderStore *store, KilnOrder *order, KilnOrder *const *replacements)
{
    int64_t group = 0;
    return replace(store, order, replacements, &group);
}
