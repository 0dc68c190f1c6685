/* SPDX-License-Identifier: Apache-2.0 */
/* A tree stands for a set of orders of things: all orders in which certain groups of things lie
 * side by side (PQ trees, after K. Booth and G. Lueker, 1976). A leaf is a thing. The children of
 * an ANY node come in any order. The children of a LINE node come in their order, or backwards. */
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

/* Immutable except for @marked, because trees share nodes. */
typedef struct KilnOrder KilnOrder;
struct KilnOrder {
    uint64_t hash;   /* equal for equal sets of orders */
    int64_t freedom; /* the logarithm of the number of orders, in units of 2^-16 */
    uint32_t leaf;   /* of a leaf: its thing */
    uint32_t leaves; /* number of leaves below */
    uint32_t marked; /* scratch */
    uint32_t n : 30, kind : 2;
    KilnOrder *children[];
};

/* Owns nodes, and frees them all at once. */
typedef struct {
    GPtrArray *blocks;
    size_t block, used;  /* the block in use, and bytes of it */
    uint32_t *groups;    /* by leaf: its group for kiln_order_join() and _replace(), or 0 */
    int64_t *factorials; /* logarithms of factorials, in the unit of KilnOrder.freedom */
    GPtrArray *scratch;
    int64_t work;
} KilnOrderStore;

void kiln_order_store_init(KilnOrderStore *store, uint32_t n_leaves);
void kiln_order_store_clear(KilnOrderStore *store);

/** Frees all nodes. */
void kiln_order_store_reset(KilnOrderStore *store);

/** Frees nodes that were made since @block and @used had these values. */
void kiln_order_store_rewind(KilnOrderStore *store, size_t block, size_t used);

KilnOrder *kiln_order_leaf(KilnOrderStore *store, uint32_t leaf, uint64_t hash);
KilnOrder *kiln_order_any(KilnOrderStore *store, KilnOrder *const *children, uint32_t n);

/** The orders of @order in which the @n leaves of group @group lie side by side; NULL if there are
 * none. */
KilnOrder *kiln_order_join(KilnOrderStore *store, KilnOrder *order, uint32_t group, uint32_t n);

/** Replaces the leaves of each group G, which lie side by side, by @replacements[G]. */
KilnOrder *kiln_order_replace(KilnOrderStore *store, KilnOrder *order,
                              KilnOrder *const *replacements);

/** Makes a copy that shares no node. */
KilnOrder *kiln_order_copy(KilnOrderStore *store, const KilnOrder *order);

#endif
