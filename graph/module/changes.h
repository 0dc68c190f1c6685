/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of graph/ note while a graph is rewritten: the order of nodes, and what was
 * touched since the function was last found valid. */
#ifndef KILN_GRAPH_MODULE_CHANGES_H
#define KILN_GRAPH_MODULE_CHANGES_H

#include "graph/module.h"

/* @node was linked into its function's list, or is about to be unlinked from it. */
void kiln_order_link(KilnNode *node);
void kiln_order_unlink(KilnNode *node);
/* @use reads another value. */
void kiln_order_relink(const KilnUse *use);
void kiln_order_clear(KilnNodeOrder *order);
/* Whether @node comes before @other of the same function, whose order is up to date. */
static inline bool
kiln_order_before(const KilnNodeOrder *order, const KilnNode *node, const KilnNode *other)
{
    return order->at[node->id] < order->at[other->id];
}

/* @node's operands, attributes, result types or place changed, or it is there no more. */
void kiln_changes_add_node(KilnNode *node);
/* @value's readers or name changed. */
void kiln_changes_add_value(KilnValue *value);
/* From here on everything is noted: @function is valid as it is. */
void kiln_changes_begin(KilnFunction *function);
/* Nothing is known of what changed. */
void kiln_changes_forget(KilnFunction *function);

/* Counts a change without a note of what it was: the caller has made one. */
static inline void
kiln_function_stamp(KilnFunction *function)
{
    function->stamp++;
    function->module->stamp++;
}

#endif
