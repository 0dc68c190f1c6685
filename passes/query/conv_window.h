/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution with another window: what rewrites of strides, pads and taps end with. */
#ifndef KILN_PASSES_QUERY_CONV_WINDOW_H
#define KILN_PASSES_QUERY_CONV_WINDOW_H

#include "passes/rule.h"

#include "graph/infer/infer.h"

/** Replaces the convolution that is the root of @match by one with the kernel, strides, dilations
 * and pads of @window, none of which may be open, and with @weights. */
bool kiln_conv_replace(KilnMatch *match, const KilnWindow *window, KilnValue *weights);

/** Taps @first … @first + window->kernel - 1 of each spatial dim of @weights, which the root of
 * @match reads, as a slice that is left to constant-fold. */
KilnValue *kiln_conv_slice_taps(KilnMatch *match, const KilnWindow *window, const int64_t *first,
                                KilnValue *weights);

#endif
