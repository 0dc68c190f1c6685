/* SPDX-License-Identifier: Apache-2.0 */
/* When values are known: a data-flow analysis over a function and its subgraphs.
 *
 *     literal  <  Type 1 argument  <  Type 2 argument  <  varying
 *
 * What a node computes is known as late as the last of its operands. The result is a mark on each
 * node, which the text form prints. Marks say something of the program and are no part of it: they
 * count neither as a change nor in hashes. */
#ifndef KILN_PASSES_FOLD_CONSTNESS_H
#define KILN_PASSES_FOLD_CONSTNESS_H

#include "graph/module.h"

/** Marks every node of @function, which is no subgraph, and of its subgraphs. Linear. */
void kiln_constness_mark(KilnFunction *function);
/** Forgets the marks. */
void kiln_constness_clear(KilnFunction *function);

/** Of an argument, a literal, or a result of a node that is marked. */
KilnConstness kiln_value_constness(const KilnValue *value);

/** All elements of all results are known integers: shapes and arithmetic on them. */
bool kiln_node_is_known(const KilnNode *node);

/** True where @node draws random numbers: also a dropout that drops, or that may at run. */
bool kiln_node_draws(const KilnNode *node);

/** True where only the type of its operand counts: shape, size and eye_like. */
bool kiln_op_reads_type_only(KilnOp op);

#endif
