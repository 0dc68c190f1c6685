/* SPDX-License-Identifier: Apache-2.0 */
/* What converters of com.microsoft share. NULL in place of a value is passed on. */
#ifndef KILN_GRAPH_ONNX_CONTRIB_CONTRIB_H
#define KILN_GRAPH_ONNX_CONTRIB_CONTRIB_H

#include "graph/graph.h"
#include "graph/onnx/convert.h"

/** Defaults of @op, to be changed. */
void *kiln_onnx_defaults(const KilnOnnxCall *call, KilnOp op);
/** @a + @b; @a where @b is NULL. */
KilnValue *kiln_onnx_plus(KilnOnnxCall *call, KilnValue *a, KilnValue *b, GError **error);
KilnValue *kiln_onnx_times(KilnOnnxCall *call, KilnValue *a, KilnValue *b, GError **error);
KilnValue *kiln_onnx_product(KilnOnnxCall *call, KilnValue *a, KilnValue *b, GError **error);
/** @x with dim perm[d] as dim d. */
KilnValue *kiln_onnx_permuted(KilnOnnxCall *call, KilnValue *x, const int64_t *perm, uint32_t n,
                              GError **error);
/** @x, whose channels are the last dim, with channels as dim 1, and the way back. */
KilnValue *kiln_onnx_channels_second(KilnOnnxCall *call, KilnValue *x, GError **error);
KilnValue *kiln_onnx_channels_last(KilnOnnxCall *call, KilnValue *x, GError **error);

#endif
