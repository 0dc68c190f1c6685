/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution by Winograd's minimal filtering F(4×4, 3×3). It takes 36 products for 16 results; the
 * direct form takes 144. Planes are row-major (NCHW). Intermediate data has the layout of the
 * register tile of the matrix product.
 *
 * Source: A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015, with the
 * interpolation points 0, ±1, ±2 and infinity. Results differ from the direct form by roundings: a
 * relative error of about 1e-6 in the Euclidean norm. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_WINOGRAD_H
#define KILN_BACKENDS_CPU_CONV_CONV_WINOGRAD_H

#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/cost.h"
#include "ir/slice.h"

#include <stddef.h>

/** True for kernels 3 × 3 with stride and dilation 1 in two dimensions, one group and at least one
 * result. */
bool kiln_winograd_supports(const KilnCpuConv *conv);

/** Bytes of the transformed weights; INT64_MAX on overflow. */
int64_t kiln_winograd_pack_size(const KilnCpuConv *conv);

/** Transforms weights at @src ([oc, ic, 3, 3], any byte address) to @dst (64-byte aligned). */
void kiln_winograd_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice);

/** Bytes of scratch for up to @threads threads; INT64_MAX on overflow. */
int64_t kiln_winograd_scratch_size(const KilnCpuConv *conv, int threads);

/** out = tail(conv(in, weights) + bias). The weights come from kiln_winograd_pack(). */
void kiln_winograd_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

/** Terms: products, in units of kiln_gemm_cost(); tiles × input channels; tiles × output channels;
 * bytes of the weights in each round, since no cache keeps them; the call. */
void kiln_winograd_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

#endif
