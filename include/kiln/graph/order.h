/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a function's nodes: a table of them in list order, and their numbers. */
#ifndef KILN_GRAPH_ORDER_H
#define KILN_GRAPH_ORDER_H

#include "graph/graph.h"

G_BEGIN_DECLS

/** The table of @function, valid until a node is linked, unlinked or moved. The next call then
 * patches it, at the cost of the changes and a sweep over the table. */
const KilnNodeOrder *kiln_function_order(KilnFunction *function);
/** Numbers nodes densely in list order. */
void kiln_function_renumber(KilnFunction *function);

/* --- for the functions of graph/ that change the list --- */

/* @node was linked into its function's list, or is about to be unlinked from it. */
void kiln_order_link(KilnNode *node);
void kiln_order_unlink(KilnNode *node);
/* @use reads another value now. */
void kiln_order_relink(const KilnUse *use);
void kiln_order_clear(KilnNodeOrder *order);
/* Whether @node comes before @other of the same function, whose order is up to date. */
static inline bool
kiln_order_before(const KilnNodeOrder *order, const KilnNode *node, const KilnNode *other)
{
    return order->at[node->id] < order->at[other->id];
}

G_END_DECLS

#endif
