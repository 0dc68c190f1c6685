/* SPDX-License-Identifier: Apache-2.0 */
/* Draws graphs for Graphviz. */
#ifndef KILN_GRAPH_TEXT_DOT_H
#define KILN_GRAPH_TEXT_DOT_H

#include "graph/module.h"

/** Appends a `digraph`: a cluster per function and subgraph, a box per node with its operator, name
 * and result types, and an edge per read. */
void kiln_module_dot(const KilnModule *module, GString *out);

#endif
