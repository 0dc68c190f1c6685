/* SPDX-License-Identifier: Apache-2.0 */
/* What passes ask of clips: the interval that a clip or a relu keeps to, two of them in a row, and
 * a node of an interval.
 *
 * A clip is min(max(x, low), high). Where x is equal to a bound it is x that is returned, which
 * shows in zeros: -0 is in [+0, 1]. Where low > high the result is high. A NaN goes through. */
#ifndef KILN_PASSES_QUERY_CLIP_H
#define KILN_PASSES_QUERY_CLIP_H

#include "graph/module.h"

/** Infinite where there is no bound. */
typedef struct {
    double low, high;
} KilnInterval;

/** The interval of a `clip` or `relu` of plain numbers; false where a bound is no literal, is NaN,
 * or is an integer that doubles do not hold. Bounds that no integer of the type exceeds are
 * infinite. */
bool kiln_clip_interval(const KilnNode *node, KilnInterval *out);

/** What @first and then @second do; false where no one clip does it: [-3,-2] and then [0,1] make
 * +0 of -0, and [0,0] keeps it. */
bool kiln_clip_chain(KilnInterval first, KilnInterval second, KilnInterval *out);

/** True where the interval is that of `relu`, for a type that has one. */
bool kiln_clip_is_relu(KilnInterval interval, KilnDType dtype);

/** @x in @interval: @x itself where there are no bounds, else a relu or a clip. */
KilnValue *kiln_clip_build(KilnNode *before, KilnValue *x, KilnInterval interval, GError **error);

#endif
