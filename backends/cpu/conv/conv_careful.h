/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution for weights that are not all finite, over an image with padding. The fast
 * algorithms multiply padding by weights: zero times infinity would be NaN. This one skips padding.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_CAREFUL_H
#define KILN_BACKENDS_CPU_CONV_CONV_CAREFUL_H

#include "backends/cpu/conv/conv_problem.h"

#include <stddef.h>

/** at() returns the weight for output channel @oc, input channel @ic of its group, and @tap. */
typedef struct {
    float (*at)(const void *data, int64_t oc, int64_t ic, int64_t tap);
    const void *data;
} KilnConvWeights;

/** True if all @n floats at @data (any byte address) are finite. */
bool kiln_all_finite(const void *data, int64_t n);

/** True if some output position reads padding. */
bool kiln_conv_reads_padding(const KilnCpuConv *conv);

/** Computes output channel @oc of @image, with its tail. Sums have the order of the reference. */
void kiln_conv_careful_channel(const KilnCpuConv *conv, const KilnCpuConvArgs *args,
                               const KilnConvWeights *weights, int64_t image, int64_t oc);

/** Computes all channels of all images. */
void kiln_conv_careful_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args,
                           const KilnConvWeights *weights);

#endif
