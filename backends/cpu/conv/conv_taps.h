/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as one product for each tap, over only those positions whose tap lies in the image.
 * Padding costs nothing. Positions of all rows and images are rows of one product, so weights are
 * read once. It suits images that are small beside the window or beside the weights. Private to the
 * folder; callers use conv.h. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_TAPS_H
#define KILN_BACKENDS_CPU_CONV_CONV_TAPS_H

#include "backends/cpu/conv/conv_problem.h"
#include "ir/slice.h"

/** True if this form suits @conv. Its weights must be packed by kiln_conv_taps_pack(). If it suits
 * some image, it computes those of any size. */
bool kiln_conv_taps_supports(const KilnCpuConv *conv);

/** Estimated costs, in units of kiln_gemm_cost(). */
typedef struct {
    double all, products; /* all: products and the work around them */
    double bytes;         /* of the weights of used taps, counted each time they are read */
} KilnTapsCost;
KilnTapsCost kiln_conv_taps_cost(const KilnCpuConv *conv);

int64_t kiln_conv_taps_pack_size(const KilnCpuConv *conv);
void kiln_conv_taps_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice);
int64_t kiln_conv_taps_scratch_size(const KilnCpuConv *conv);
void kiln_conv_taps_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

#endif
