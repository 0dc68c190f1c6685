/* SPDX-License-Identifier: Apache-2.0 */
/* A tree stands for a set of orders of things: all orders in which certain groups of things lie
 * side by side (PQ trees, after K. Booth and G. Lueker, 1976). A leaf is a thing. The children of
 * an ANY node may come in any order. The children of a LINE node come in their order, or backwards.
 */
#ifndef KILN_IR_PLAN_PLACE_TREE_H
#define KILN_IR_PLAN_PLACE_TREE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    KILN_ORDER_LEAF,
    KILN_ORDER_ANY,
    KILN_ORDER_LINE,
} KilnOrderKind;

/* Never changed once it is made, but for @marked: trees share nodes. */
typedef struct KilnOrder KilnOrder;
struct KilnOrder {
    uint64_t hash;   /* the same for the same set of orders */
    int64_t freedom; /* the logarithm of how many orders there are, in units of 2^-16 */
    uint32_t leaf;   /* what it is, where it is one */
    uint32_t leaves; /* how many are below */
    uint32_t marked; /* scratch */
    uint32_t n : 30, kind : 2;
    KilnOrder *children[];
};

/* Where nodes are made. They are freed all at once. */
typedef struct {
    GPtrArray *blocks;
    size_t block, used;  /* the block in use, and bytes of it */
    uint32_t *groups;    /* of each leaf: what kiln_order_join() and _replace() are about, or 0 */
    int64_t *factorials; /* their logarithms, in the unit of KilnOrder.freedom */
    GPtrArray *scratch;
    int64_t work;
} KilnOrderStore;

void kiln_order_store_init(KilnOrderStore *store, uint32_t n_leaves);
void kiln_order_store_clear(KilnOrderStore *store);

/** Frees all nodes. */
void kiln_order_store_reset(KilnOrderStore *store);

/** Frees what was made since @block and @used were as given. */
void kiln_order_store_rewind(KilnOrderStore *store, size_t block, size_t used);

KilnOrder *kiln_order_leaf(KilnOrderStore *store, uint32_t leaf, uint64_t hash);
KilnOrder *kiln_order_any(KilnOrderStore *store, KilnOrder *const *children, uint32_t n);

/** The orders of @order in which the @n leaves of group @group lie side by side; NULL where there
 * are none. */
KilnOrder *kiln_order_join(KilnOrderStore *store, KilnOrder *order, uint32_t group, uint32_t n);

/** Puts @replacements[G] where the leaves of group G are, which lie side by side. */
KilnOrder *kiln_order_replace(KilnOrderStore *store, KilnOrder *order,
                              KilnOrder *const *replacements);

/** A copy that shares nothing. */
KilnOrder *kiln_order_copy(KilnOrderStore *store, const KilnOrder *order);

#endif
