/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files graph/onnx/export*.c share. */
#ifndef KILN_GRAPH_ONNX_EXPORT_H
#define KILN_GRAPH_ONNX_EXPORT_H

#include "graph/module.h"

typedef struct {
    int opset;
    GHashTable *names; /* KilnValue* → its name in the file; looked up, never iterated */
    GHashTable *used;  /* names that the graph being written can see */
    GArray *domains;   /* KilnOpset: those of operators of plug-ins */
} KilnOnnxExport;

/** Appends the GraphProto of @function. */
gboolean kiln_onnx_write_graph(KilnOnnxExport *export_, const KilnFunction *function,
                               GByteArray *out, GError **error);
/** Appends the AttributeProtos of @node to a NodeProto. */
gboolean kiln_onnx_write_attrs(KilnOnnxExport *export_, const KilnNode *node, GByteArray *out,
                               GError **error);
/** The same of an operator of a plug-in, and its domain. */
gboolean kiln_onnx_write_plugin(KilnOnnxExport *export_, const KilnNode *node, GByteArray *out,
                                GError **error);
/** Notes that the file has nodes of @opset, whose domain outlives the export. A file has one
 * version for a domain. */
gboolean kiln_onnx_note_domain(KilnOnnxExport *export_, const KilnOpset *opset, GError **error);
/** Appends @message as a field. Fails if the result exceeds the limit of protobuf. */
gboolean kiln_onnx_append(GByteArray *out, uint32_t field, const GByteArray *message,
                          GError **error);

/** Appends the fields of the TypeProto of @type, which has no layout and is not quantized. */
void kiln_onnx_put_type(const KilnType *type, GByteArray *out);

/** The opset to write: the lowest of 17 and 21 in which every node of @function has its form of
 * graph/ops. */
int kiln_onnx_export_opset(const KilnFunction *function);

/** True if a value of @function or of a subgraph has a quantized type. */
bool kiln_onnx_has_quantized(const KilnFunction *function);
/** Rewrites @function to plain types. quantize_linear and dequantize_linear, with the parameters as
 * operands, surround the nodes that compute on quantized types. Arguments and results become the
 * stored integers. */
gboolean kiln_onnx_state_quantization(KilnFunction *function, GError **error);

/** True if @function or a subgraph has a product with packed weights. */
bool kiln_onnx_has_nbits(const KilnFunction *function);
/** Rewrites products with packed weights in @function to dequantize_linear and matmul. They stay
 * where their weights are no literals of bytes. KILN_ERROR_UNSUPPORTED if ONNX Runtime does not
 * take the blocks of one that stays. */
gboolean kiln_onnx_state_nbits(KilnFunction *function, GError **error);

/** Sets KILN_ERROR_UNSUPPORTED, naming the node. Always FALSE. */
gboolean kiln_onnx_throw_export(const KilnNode *node, const char *why, GError **error);

#endif
