/* SPDX-License-Identifier: Apache-2.0 */
/* Expresses rare operators by common ones: for targets without a kernel, and for ONNX up to opset
 * 21. */
#ifndef KILN_GRAPH_MODULE_DECOMPOSE_H
#define KILN_GRAPH_MODULE_DECOMPOSE_H

#include "graph/module.h"

/** True if kiln_decompose() knows the operator in the form of @node. */
bool kiln_node_decomposes(const KilnNode *node);

/** Builds nodes that compute the same right before @node, and returns their result. It has the type
 * of the result of @node. @node does not change. NULL without an error if the types are too open.
 *
 *     swish(x)               x · sigmoid(alpha · x)
 *     rms_normalization(x)   x / √(reduce_mean(x²) + epsilon) · scale
 *     attention(q, k, v, m)  matmul(softmax(matmul(scale · q, transpose(k)) + m), v)
 *     channel_shuffle(x)     reshape, transpose, reshape
 *     batch_normalization(x) transpose, the same of dim 1, transpose
 *
 * Normalization and attention of half floats are computed in f32. */
KilnValue *kiln_decompose(KilnNode *node, GError **error);

#endif
