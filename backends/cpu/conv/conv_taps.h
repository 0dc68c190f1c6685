/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as one product for each tap, over the positions alone whose tap lies in the image:
 * what reads padding costs nothing, and positions of all rows and images are rows of one product,
 * so that weights are read once. For images that are small beside the window, or beside the
 * weights. Private to the folder; callers use conv.h. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_TAPS_H
#define KILN_BACKENDS_CPU_CONV_CONV_TAPS_H

#include "backends/cpu/conv/conv_problem.h"
#include "ir/slice.h"

/** True when @conv can be computed so; its weights must be packed, and are for this form alone. */
bool kiln_conv_taps_supports(const KilnCpuConv *conv);

/** Estimated cost in the units of kiln_gemm_cost(), with what surrounds the products; and of them
 * alone. */
typedef struct {
    double all, products;
    double bytes; /* of weights that some position meets, each time that they are read */
} KilnTapsCost;
KilnTapsCost kiln_conv_taps_cost(const KilnCpuConv *conv);

int64_t kiln_conv_taps_pack_size(const KilnCpuConv *conv);
void kiln_conv_taps_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice);
int64_t kiln_conv_taps_scratch_size(const KilnCpuConv *conv);
void kiln_conv_taps_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

#endif
