/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of tree_ensemble in their order, for an enumeration of a file. The instruction has
 * its result in front of them. */
#ifndef KILN_GRAPH_INFER_TREE_OPERANDS_H
#define KILN_GRAPH_INFER_TREE_OPERANDS_H

#define KILN_TREE_OPERANDS X, ROOTS, FEATURES, SPLITS, CHILDREN, MISSING, STARTS, TARGETS, WEIGHTS

#endif
