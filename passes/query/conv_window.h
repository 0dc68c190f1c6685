/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a convolution another window: the last step of rewrites of strides, pads and taps. */
#ifndef KILN_PASSES_QUERY_CONV_WINDOW_H
#define KILN_PASSES_QUERY_CONV_WINDOW_H

#include "passes/rule.h"

#include "graph/infer/infer.h"

/** Replaces the convolution that is the root of @match. The new one has @weights and the kernel,
 * strides, dilations and pads of @window, none of which may be open. */
bool kiln_conv_replace(KilnMatch *match, const KilnWindow *window, KilnValue *weights);

/** A slice of @weights, which the root of @match reads: taps @first … @first + window->kernel - 1
 * of each spatial dim. constant-fold computes it. */
KilnValue *kiln_conv_slice_taps(KilnMatch *match, const KilnWindow *window, const int64_t *first,
                                KilnValue *weights);

#endif
