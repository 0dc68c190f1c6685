/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution in one to three dimensions, planes row-major (NCHW and its kin), groups, strides,
 * dilations and any padding, with bias, residual and activation in the tail.
 * Allocates nothing: constant weights are packed once into memory of the caller, and all work space
 * is scratch of the caller. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_H
#define KILN_BACKENDS_CPU_CONV_CONV_H

#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/cost.h"
#include "ir/slice.h"

/** Bytes of the packed weights. */
int64_t kiln_cpu_conv_pack_size(const KilnCpuConv *conv);

/** Pack @slice of the weights at @src (any byte address) to @dst, 64-byte aligned: where the whole
 * of both begins. */
void kiln_cpu_conv_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice);

/** Bytes of scratch for @threads threads, INT64_MAX when no number can say it. */
int64_t kiln_cpu_conv_scratch_size(const KilnCpuConv *conv, int threads);

/** out = tail(conv(in, weights) + bias); extents of zero are fine. */
void kiln_cpu_conv_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

/** The terms of a direct convolution of any kind, which is returned: the products, in units of
 * kiln_gemm_cost(); the bytes that are read and written once; and the call. By taps: what surrounds
 * the products, and the bytes of the weights, come behind them. */
KilnCpuCostKind kiln_direct_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

#endif
