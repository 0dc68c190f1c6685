/* SPDX-License-Identifier: Apache-2.0 */
/* Clips as intervals: the interval of a clip or a relu, two of them in a row, and a node for an
 * interval.
 *
 * A clip is min(max(x, low), high). If x equals a bound, the result is x, which matters for zeros:
 * -0 is in [+0, 1]. If low > high, the result is high. A NaN stays NaN. */
#ifndef KILN_PASSES_QUERY_CLIP_H
#define KILN_PASSES_QUERY_CLIP_H

#include "graph/module.h"

/** Infinite if there is no bound. */
typedef struct {
    double low, high;
} KilnInterval;

/** The interval of a `clip` or `relu` of plain numbers. False if a bound is no literal, is NaN, or
 * is an integer that a double cannot hold. Bounds at the limits of an integer type are infinite. */
bool kiln_clip_interval(const KilnNode *node, KilnInterval *out);

/** The interval of @first, then @second. False if no single clip does it: [-3,-2] and then [0,1]
 * turn -0 into +0, but [0,0] keeps -0. */
bool kiln_clip_chain(KilnInterval first, KilnInterval second, KilnInterval *out);

/** True if @interval is that of `relu`, and @dtype has a relu. */
bool kiln_clip_is_relu(KilnInterval interval, KilnDType dtype);

/** Clips @x to @interval: @x itself without bounds, else a relu or a clip. */
KilnValue *kiln_clip_build(KilnNode *before, KilnValue *x, KilnInterval interval, GError **error);

#endif
