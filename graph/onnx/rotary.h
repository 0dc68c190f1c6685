/* SPDX-License-Identifier: Apache-2.0 */
/* Rotations of pairs of elements, which several converters build. */
#ifndef KILN_GRAPH_ONNX_ROTARY_H
#define KILN_GRAPH_ONNX_ROTARY_H

#include "graph/graph.h"
#include "graph/onnx/steps.h"

typedef struct {
    KilnOnnxSteps s;
    KilnValue *cos, *sin; /* of each pair, as they broadcast to halves of heads */
    int64_t size, turned; /* elements of a head, and how many of them turn */
    int64_t interleaved;  /* the pairs are neighbours, not halves */
} KilnOnnxRotary;

/** Rows of the table @cache, [positions, pairs], with a dim of 1 at @heads. NULL in @positions:
 * the table has a row for each place already. */
KilnValue *kiln_onnx_rotary_angles(const KilnOnnxSteps *s, KilnValue *cache, KilnValue *positions,
                                   int64_t heads);
/** @x of rank 4, the last dim of which is `size`. */
KilnValue *kiln_onnx_step_rotate(const KilnOnnxRotary *r, KilnValue *x);
/** The same of [batch, rows, @heads × size]; @x of rank 4 is turned as it is. -1: heads of any
 * number. */
KilnValue *kiln_onnx_step_rotate_heads(const KilnOnnxRotary *r, KilnValue *x, int64_t heads);
/** Checks `turned` against `size`. */
gboolean kiln_onnx_rotary_check(const KilnOnnxRotary *r, GError **error);

#endif
