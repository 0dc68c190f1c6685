/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out when values are known: a data-flow analysis over a function and its subgraphs.
 *
 *     literal  <  Type 1 argument  <  Type 2 argument  <  varying
 *
 * A result is known as late as the last operand of its node. The analysis marks each node; the text
 * form prints the marks. They are no part of the program: neither changes nor hashes count them. */
#ifndef KILN_PASSES_FOLD_CONSTNESS_H
#define KILN_PASSES_FOLD_CONSTNESS_H

#include "graph/module.h"

/** Marks every node of @function (no subgraph) and of its subgraphs. Linear. */
void kiln_constness_mark(KilnFunction *function);
/** Removes the marks. */
void kiln_constness_clear(KilnFunction *function);

/** The constness of an argument, a literal, or a result of a marked node. */
KilnConstness kiln_value_constness(const KilnValue *value);

/** True if all elements of all results are known integers: shapes and arithmetic on them. */
bool kiln_node_is_known(const KilnNode *node);

/** True if @node draws random numbers. A dropout counts if it drops, or if a run may make it drop.
 */
bool kiln_node_draws(const KilnNode *node);
/** True if @node gives the same results for the same operands, does nothing else, and has no
 * subgraph. */
bool kiln_node_is_pure(const KilnNode *node);

/** True if only the type of the operand counts: shape, size and eye_like. */
bool kiln_op_reads_type_only(KilnOp op);

#endif
