/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps over all nodes of a function. A big function does not fit into caches, so a walk along its
 * list waits for each node. A sweep over a table of nodes knows the next ones and prefetches them,
 * so that cache misses overlap. */
#ifndef KILN_GRAPH_MODULE_SWEEP_H
#define KILN_GRAPH_MODULE_SWEEP_H

#include "graph/module.h"
#include "graph/order.h"

enum {
    KILN_AHEAD_NODE = 32, /* how many nodes ahead: the node itself */
    KILN_AHEAD_PARTS = 24,
    KILN_AHEAD_VALUES = 16,
    KILN_AHEAD_DEFS = 8,
    KILN_AHEAD_OPERANDS = 3, /* operands of each node to prefetch */
};

/** Reads only memory that earlier calls have prefetched. Skips NULL nodes. */
static inline void
kiln_prefetch(const KilnNode *node, const KilnNode *parts, const KilnNode *values,
              const KilnNode *defs)
{
    __builtin_prefetch(node);
    if (parts) {
        __builtin_prefetch(parts->operands);
        __builtin_prefetch(parts->results);
        __builtin_prefetch(parts->attrs);
    }
    for (uint32_t i = 0; values && i < values->n_operands && i < KILN_AHEAD_OPERANDS; i++)
        __builtin_prefetch(values->operands[i].value);
    for (uint32_t i = 0; defs && i < defs->n_operands && i < KILN_AHEAD_OPERANDS; i++) {
        const KilnValue *value = defs->operands[i].value;
        if (value)
            __builtin_prefetch(value->def);
    }
}

/** The same for a walk over an array of nodes. @left nodes remain, from @next on. */
static inline void
kiln_prefetch_nodes(KilnNode *const *next, size_t left)
{
    if (left > KILN_AHEAD_NODE)
        kiln_prefetch(next[KILN_AHEAD_NODE], next[KILN_AHEAD_PARTS], next[KILN_AHEAD_VALUES],
                      next[KILN_AHEAD_DEFS]);
}

/** For a worklist of @n nodes that is read from its end, to find out which nodes are dead. */
static inline void
kiln_prefetch_last(KilnNode *const *nodes, size_t n)
{
    if (n > KILN_AHEAD_VALUES) {
        __builtin_prefetch(nodes[n - 1 - KILN_AHEAD_VALUES]);
        __builtin_prefetch(nodes[n - 1 - KILN_AHEAD_DEFS]->results);
    }
}

/** For a walk over an array of nodes that looks up the names of their results. */
static inline void
kiln_prefetch_names(KilnNode *const *next, size_t left)
{
    if (left > KILN_AHEAD_NODE && next[KILN_AHEAD_DEFS]->n_results)
        __builtin_prefetch(next[KILN_AHEAD_DEFS]->results[0].name);
}

/** For a walk over an array of nodes that follows the readers of their results. */
static inline void
kiln_prefetch_readers(KilnNode *const *next, size_t left)
{
    if (left <= KILN_AHEAD_NODE)
        return;
    const KilnNode *uses = next[KILN_AHEAD_VALUES], *users = next[KILN_AHEAD_DEFS];
    __builtin_prefetch(next[KILN_AHEAD_NODE]);
    __builtin_prefetch(next[KILN_AHEAD_PARTS]->results);
    if (uses->n_results)
        __builtin_prefetch(uses->results[0].first_use);
    if (users->n_results && users->results[0].first_use)
        __builtin_prefetch(users->results[0].first_use->user);
}

/** Node @i of the table; NULL if it was unlinked since. Prefetches nodes further on in the
 * direction of @step, which is 1 or -1. */
static inline KilnNode *
kiln_order_visit(const KilnNodeOrder *order, uint32_t i, int step)
{
    const KilnOrderEntry *next = &order->entries[i];
    if ((step > 0 ? order->n - 1 - i : i) >= KILN_AHEAD_NODE)
        kiln_prefetch(next[step * KILN_AHEAD_NODE].node, next[step * KILN_AHEAD_PARTS].node,
                      next[step * KILN_AHEAD_VALUES].node, next[step * KILN_AHEAD_DEFS].node);
    return next->node;
}

/** Visits the nodes that @function_ has now, in list order. The body may change and unlink nodes.
 * It may link nodes, which are not visited, but must not call kiln_function_order() after that. A
 * `break` leaves only the current node. */
#define kiln_foreach_ordered(node, function_)                                                      \
    for (const KilnNodeOrder *order_##node = kiln_function_order(function_); order_##node;         \
         order_##node = NULL)                                                                      \
        for (uint32_t i_##node = 0; i_##node < order_##node->n; i_##node++)                        \
            for (KilnNode *node = kiln_order_visit(order_##node, i_##node, 1); node; node = NULL)
/** The same from the last to the first. */
#define kiln_foreach_ordered_reverse(node, function_)                                              \
    for (const KilnNodeOrder *order_##node = kiln_function_order(function_); order_##node;         \
         order_##node = NULL)                                                                      \
        for (uint32_t i_##node = order_##node->n; i_##node-- > 0;)                                 \
            for (KilnNode *node = kiln_order_visit(order_##node, i_##node, -1); node; node = NULL)

#endif
