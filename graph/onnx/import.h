/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and their nodes: what an import consists of. */
#ifndef KILN_GRAPH_ONNX_IMPORT_H
#define KILN_GRAPH_ONNX_IMPORT_H

#include "graph/onnx/scope.h"

/** Nodes of a graph, one after the other. */
gboolean kiln_onnx_import_node(KilnOnnxScope *scope, const KilnOnnxNode *node, GError **error);

/** Imports @graph into @function: arguments, constants, nodes, results. */
gboolean kiln_onnx_import_graph(KilnOnnxImport *import, KilnOnnxScope *outer,
                                const KilnOnnxGraph *graph, KilnFunction *function,
                                const KilnType *argument_types, uint32_t n, GError **error);

/** The same as nodes of the function of @outer, which takes no arguments: stores in @out (one per
 * output of @graph) what the outputs are. */
gboolean kiln_onnx_import_contents(KilnOnnxImport *import, KilnOnnxScope *outer,
                                   const KilnOnnxGraph *graph, KilnValue **out, GError **error);

#endif
