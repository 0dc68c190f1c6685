/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution: each group has one input channel and any number of output channels.
 * Vectors run along the output rows. Private to the folder; callers use conv.h. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_DEPTHWISE_H
#define KILN_BACKENDS_CPU_CONV_CONV_DEPTHWISE_H

#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/cost.h"
#include "ir/slice.h"

/** True if the kernels of this file compute @conv. */
static inline bool
kiln_conv_is_depthwise(const KilnCpuConv *conv)
{
    return conv->groups > 1 && conv->ic == conv->groups;
}

void kiln_conv_depthwise_pack(const KilnCpuConv *conv, const void *src, float *dst,
                              KilnSlice slice);
int64_t kiln_conv_depthwise_scratch_size(const KilnCpuConv *conv, int threads);
void kiln_conv_depthwise_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

/** Terms: vector products of 3 × 3 kernels, and of others; result rows; planes; bytes; the call. */
void kiln_depthwise_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

#endif
