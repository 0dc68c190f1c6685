/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution of weights that are not all finite, over an image with padding. What is fast
 * multiplies padding, zero times infinity is NaN, and that is none of the result. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_CAREFUL_H
#define KILN_BACKENDS_CPU_CONV_CONV_CAREFUL_H

#include "backends/cpu/conv/conv_problem.h"

#include <stddef.h>

/** Weight @tap of input channel @ic, of its group, for output channel @oc. */
typedef struct {
    float (*at)(const void *data, int64_t oc, int64_t ic, int64_t tap);
    const void *data;
} KilnConvWeights;

/** True where all of @n floats at @data, any byte address, are finite. */
bool kiln_all_finite(const void *data, int64_t n);

/** True where some output position reads padding. */
bool kiln_conv_reads_padding(const KilnCpuConv *conv);

/** Output channel @oc of @image, with its tail, in the order of sums of the reference. */
void kiln_conv_careful_channel(const KilnCpuConv *conv, const KilnCpuConvArgs *args,
                               const KilnConvWeights *weights, int64_t image, int64_t oc);

/** All of them. */
void kiln_conv_careful_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args,
                           const KilnConvWeights *weights);

#endif
