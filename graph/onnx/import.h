/* SPDX-License-Identifier: Apache-2.0 */
/* Imports graphs and their nodes, which it sorts before. */
#ifndef KILN_GRAPH_ONNX_IMPORT_H
#define KILN_GRAPH_ONNX_IMPORT_H

#include "graph/module.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"

/** Imports one node of a graph. Call it for all nodes in order. */
gboolean kiln_onnx_import_node(KilnOnnxScope *scope, const KilnOnnxNode *node, GError **error);

/** Imports @graph into @function: arguments, constants, nodes, results. */
gboolean kiln_onnx_import_graph(KilnOnnxImport *import, KilnOnnxScope *outer,
                                const KilnOnnxGraph *graph, KilnFunction *function,
                                const KilnType *argument_types, uint32_t n, GError **error);

/** Imports @graph as nodes of the function of @outer. Its inputs are @arguments, one per input
 * (NULL: it has none). Stores the values of its outputs in @out, one per output. */
gboolean kiln_onnx_import_contents(KilnOnnxImport *import, KilnOnnxScope *outer,
                                   const KilnOnnxGraph *graph, KilnValue *const *arguments,
                                   KilnValue **out, GError **error);

/** The same, as nodes of @function, a subgraph that sees the values of @outer. */
gboolean kiln_onnx_import_into(KilnOnnxImport *import, KilnOnnxScope *outer,
                               const KilnOnnxGraph *graph, KilnFunction *function,
                               KilnValue *const *arguments, KilnValue **out, GError **error);

/** Imports the nodes of a function in place of its call, as nodes of the function of @outer.
 * @operands has one value per parameter; NULL: left out. Stores the outputs in @out. */
gboolean kiln_onnx_import_body(KilnOnnxScope *outer, const KilnOnnxFrame *frame,
                               KilnValue *const *operands, KilnValue **out, GError **error);

/** Puts each node of @graph, and of the graphs inside its nodes, behind the nodes that it reads.
 * Nodes that are sorted already stay where they are. Adds a note to @module for each graph that was
 * not sorted. A graph with a cycle stays as it is: the importer reports it. */
void kiln_onnx_sort(KilnOnnxGraph *graph, KilnModule *module);

#endif
