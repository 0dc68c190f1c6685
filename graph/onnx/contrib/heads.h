/* SPDX-License-Identifier: Apache-2.0 */
/* What the attentions of com.microsoft share. */
#ifndef KILN_GRAPH_ONNX_CONTRIB_HEADS_H
#define KILN_GRAPH_ONNX_CONTRIB_HEADS_H

#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

/** What the attributes say, and what is attended. */
typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t heads, causal;
    float scale;          /* 0: one over the root of the head size */
    float filter;         /* is added where a mask of integers has 0 */
    KilnValue *q, *k, *v; /* [batch, heads, rows, head size] */
    KilnValue *n_keys;    /* i64[1]: how many rows of k and v there are; NULL: all */
    KilnValue *before;    /* a number of i64: how many of these are of earlier steps; NULL: those
                           * that are more than rows of q */
    bool shows;           /* result 3 is wanted */
} KilnOnnxHeads;

gboolean kiln_onnx_heads_read(KilnOnnxHeads *self, GError **error);
/** [batch, rows, hidden] as [batch, heads, rows, hidden / heads] */
KilnValue *kiln_onnx_heads_split(const KilnOnnxHeads *self, KilnValue *x);
/** Sets result 0, [batch, rows, hidden], and result 3, the scores. @mask and @bias: operands. */
gboolean kiln_onnx_heads_attend(KilnOnnxHeads *self, uint32_t mask, uint32_t bias, GError **error);

#endif
