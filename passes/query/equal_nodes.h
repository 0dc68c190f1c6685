/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that compute the same: op, attributes, operands and result types are equal. Two operands of
 * a commutative op may be swapped. Constants are compared by their elements. */
#ifndef KILN_PASSES_QUERY_EQUAL_NODES_H
#define KILN_PASSES_QUERY_EQUAL_NODES_H

#include "graph/module.h"

/** Equal for equal nodes, wherever these lie in memory. */
uint32_t kiln_node_hash(const KilnNode *node);
/** True if both compute the same, where they are pure (passes/fold/constness.h). */
bool kiln_node_equal(const KilnNode *a, const KilnNode *b);

#endif
