/* SPDX-License-Identifier: Apache-2.0 */
/* Imports and exports ONNX files. */
#ifndef KILN_GRAPH_ONNX_ONNX_H
#define KILN_GRAPH_ONNX_ONNX_H

#include "graph/module.h"

/** What a caller allows a model. */
typedef struct {
    bool alone;        /* KILN_ERROR_FORMAT if the model names other files */
    bool newer_opsets; /* operators of opsets that are too new count as those of the newest known */
} KilnOnnxOptions;

/** Imports a model as a module with one function, in the canonical form of graph/ops. Opsets 1 to
 * 28 are known. Each operator is judged for itself, by the opset that the model imports.
 *
 * Weights are neither copied nor read. Constants refer to @bytes and to mapped files beside @path,
 * the file of @bytes (NULL: none, and no external data). Operators that Kiln lacks never fail the
 * import: they become `unknown` nodes, which `kiln check` lists. Fails with KILN_ERROR_FORMAT (the
 * file contradicts itself; the message has the byte offset), KILN_ERROR_INVALID (a node breaks a
 * rule; the message names it), or an error of shape inference. */
KilnModule *kiln_onnx_import(GBytes *bytes, const char *path, GError **error);
/** The same with @options. */
KilnModule *kiln_onnx_import_with(GBytes *bytes, const char *path, const KilnOnnxOptions *options,
                                  GError **error);
/** Maps the file @path and imports it. */
KilnModule *kiln_onnx_import_file(const char *path, GError **error);

/** Appends the module's one function as an ONNX model: opset 17 if every node has that form, else
 * 21, or a newer one that has the form. Fails with KILN_ERROR_UNSUPPORTED, naming the first node or
 * value that ONNX cannot express (operators of other domains, blocked layouts, variables), or
 * KILN_ERROR_LIMIT over 2 GiB. */
gboolean kiln_onnx_export(const KilnModule *module, GByteArray *out, GError **error);

/** Parses one TensorProto, as test data has it. The tensor shares @bytes. @out_name (may be NULL)
 * gets its name; the caller frees it. */
KilnTensor *kiln_onnx_tensor_parse(GBytes *bytes, const char *path, char **out_name,
                                   GError **error);
/** Appends @tensor as a TensorProto. */
gboolean kiln_onnx_tensor_write(const KilnTensor *tensor, const char *name, GByteArray *out,
                                GError **error);

/** Parses a SequenceProto, OptionalProto or MapProto, as @type says. Its contents say only what an
 * empty map has. The caller owns the item, which is not NULL. KILN_ERROR_FORMAT names the byte
 * offset of a defect, KILN_ERROR_UNSUPPORTED parts that Kiln lacks: sparse tensors, sequences of
 * sequences, optionals of optionals. */
KilnItem *kiln_onnx_item_parse(GBytes *bytes, const char *path, const KilnType *type,
                               GError **error);
/** Appends @item, or the empty one of @dtype where it is NULL, as the message of its kind.
 * KILN_ERROR_LIMIT over 2 GiB. */
gboolean kiln_onnx_item_write(const KilnItem *item, KilnDType dtype, const char *name,
                              GByteArray *out, GError **error);

#endif
