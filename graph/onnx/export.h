/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of graph/onnx/export*.c share. */
#ifndef KILN_GRAPH_ONNX_EXPORT_H
#define KILN_GRAPH_ONNX_EXPORT_H

#include "graph/module.h"
#include "graph/onnx/wire.h"

typedef struct {
    int opset;
    GHashTable *names; /* KilnValue* → its name in the file; looked up, never iterated */
    GHashTable *used;  /* names that are seen where the graph being written stands */
} KilnOnnxExport;

/** Appends the GraphProto of @function. */
gboolean kiln_onnx_write_graph(KilnOnnxExport *export_, const KilnFunction *function,
                               GByteArray *out, GError **error);
/** Appends the AttributeProtos of @node to a NodeProto. */
gboolean kiln_onnx_write_attrs(KilnOnnxExport *export_, const KilnNode *node, GByteArray *out,
                               GError **error);
/** Appends @message as a field, unless the whole grows over what protobuf can hold. */
gboolean kiln_onnx_append(GByteArray *out, uint32_t field, const GByteArray *message,
                          GError **error);

/** The opset to write: the lowest of those used here (17, 21) in which every node of @function has
 * the form of graph/ops. */
int kiln_onnx_export_opset(const KilnFunction *function);

/** True where a value of @function (or of a subgraph) is of a quantized type. */
bool kiln_onnx_has_quantized(const KilnFunction *function);
/** Rewrites @function to plain types: parameters become operands of quantize_linear and
 * dequantize_linear, which stand around what computes on quantized types; arguments and results are
 * the integers that are stored. */
gboolean kiln_onnx_state_quantization(KilnFunction *function, GError **error);

/** KILN_ERROR_UNSUPPORTED, naming the node. Always FALSE. */
gboolean kiln_onnx_throw_export(const KilnNode *node, const char *why, GError **error);

#endif
