/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the nodes of graphs that are not in topological order. */
#ifndef KILN_GRAPH_ONNX_SORT_H
#define KILN_GRAPH_ONNX_SORT_H

#include "graph/module.h"
#include "graph/onnx/model.h"

/** Puts each node of @graph, and of the graphs inside its nodes, behind the nodes that it reads.
 * Nodes that are sorted already stay where they are. Adds a note to @module for each graph that was
 * not sorted. A graph with a cycle stays as it is: the importer reports it. */
void kiln_onnx_sort(KilnOnnxGraph *graph, KilnModule *module);

#endif
