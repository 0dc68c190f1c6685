/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that several converters of com.microsoft take, beside those of graph/onnx/steps.h. */
#ifndef KILN_GRAPH_ONNX_CONTRIB_CONTRIB_H
#define KILN_GRAPH_ONNX_CONTRIB_CONTRIB_H

#include "graph/graph.h"
#include "graph/onnx/steps.h"

/** @a + operand @i of the node; @a where the node has no such operand. */
KilnValue *kiln_onnx_step_add_operand(const KilnOnnxSteps *s, KilnValue *a, uint32_t i);
/** gelu(@x), exact ("none") or by "tanh". */
KilnValue *kiln_onnx_step_gelu(const KilnOnnxSteps *s, KilnValue *x, const char *approximate);
/** The @n results of a node of @op, which are called after @suffix. NULL: it failed. */
KilnValue *kiln_onnx_step_results(const KilnOnnxSteps *s, KilnOp op, const void *attrs,
                                  KilnValue *x, uint32_t n, const char *suffix);
/** Two results of @x: the @k greatest elements along the last axis, and where they are. NULL: it
 * failed. */
KilnValue *kiln_onnx_step_greatest(const KilnOnnxSteps *s, KilnValue *x, int64_t k);
/** The same for a @k that is a list of one i64. */
KilnValue *kiln_onnx_step_greatest_of(const KilnOnnxSteps *s, KilnValue *x, KilnValue *k);
/** @a, whose channels are the last dim, with channels as dim 1, and the way back. */
KilnValue *kiln_onnx_step_channels_second(const KilnOnnxSteps *s, KilnValue *a);
KilnValue *kiln_onnx_step_channels_last(const KilnOnnxSteps *s, KilnValue *a);
/** The real numbers of integers, by a scale and a zero point, which may be NULL. @block: how many
 * along @axis have one of each; 0: all, or one each. */
KilnValue *kiln_onnx_step_dequantize(const KilnOnnxSteps *s, KilnValue *const operands[3],
                                     int64_t axis, int64_t block);
/** The product of the integers @a and @b as floats, times both scales. The zero points @zeros may
 * be NULL. */
KilnValue *kiln_onnx_step_scaled_product(const KilnOnnxSteps *s, KilnValue *a, KilnValue *b,
                                         KilnValue *const zeros[2], KilnValue *const scales[2]);
/** @scores, [rows, words], where words are @blocked that would repeat the last @n - 1 of @tokens
 * and one that came behind them before. */
KilnValue *kiln_onnx_step_block_repeats(const KilnOnnxSteps *s, KilnValue *tokens,
                                        KilnValue *scores, int64_t n, double blocked);

#endif
