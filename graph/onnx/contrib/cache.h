/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values that stand behind those of earlier steps, in a buffer of any length. The buffer
 * may have more rows than there are tokens. */
#ifndef KILN_GRAPH_ONNX_CONTRIB_CACHE_H
#define KILN_GRAPH_ONNX_CONTRIB_CACHE_H

#include "graph/graph.h"
#include "graph/onnx/steps.h"

/** What a step of a decoder knows of the tokens before it. */
typedef struct {
    KilnValue *lengths; /* i64[batch]: the tokens behind this step */
    KilnValue *before;  /* i64[batch]: those before it; NULL: none */
    KilnValue *total;   /* i64: the most tokens of all samples */
} KilnOnnxTokens;

/** 0 to @n - 1, where @n is a scalar. */
KilnValue *kiln_onnx_count_to(const KilnOnnxSteps *s, KilnValue *n);
/** Reads operand @lengths, which has a number for each sample of @x, plus @more, and operand
 * @total. Tokens before the step: those that the rows of @x do not hold, or that operand @rows of
 * the node says. */
gboolean kiln_onnx_read_tokens(const KilnOnnxSteps *s, KilnValue *x, uint32_t lengths, double more,
                               uint32_t total, uint32_t rows, KilnOnnxTokens *out);
/** [batch, rows]: where the rows of @x, which is [batch, rows, ..], stand among the tokens. */
KilnValue *kiln_onnx_token_positions(const KilnOnnxSteps *s, const KilnOnnxTokens *tokens,
                                     KilnValue *x);
/** @x, [batch, heads, rows, size], written into operand @past, which grows if it has too few
 * rows. @x itself where there is no such operand. */
KilnValue *kiln_onnx_into_cache(const KilnOnnxSteps *s, const KilnOnnxTokens *tokens, uint32_t past,
                                KilnValue *x);
/** @x with zeros behind dim @dim, so that it is as long as dim @other of @like. */
KilnValue *kiln_onnx_as_long(const KilnOnnxSteps *s, KilnValue *x, int dim, KilnValue *like,
                             int other);

#endif
