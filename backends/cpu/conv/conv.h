/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution in one to three dimensions, with groups, strides, dilations and any padding. Planes
 * are row-major (NCHW and its kin). The tail adds bias, residual and activation. Nothing is
 * allocated here. Constant weights are packed once into memory of the caller. All work space is
 * scratch of the caller. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_H
#define KILN_BACKENDS_CPU_CONV_CONV_H

#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/cost.h"
#include "ir/slice.h"

/** The best form of packed weights for the extents. */
KilnConvForm kiln_cpu_conv_best_form(const KilnCpuConv *conv);

/** Bytes of the packed weights. They do not depend on images, unless the form does. */
int64_t kiln_cpu_conv_pack_size(const KilnCpuConv *conv);

/** Packs @slice of the weights at @src (any byte address) to @dst (64-byte aligned). Both point to
 * the beginning of the whole, not of the slice. */
void kiln_cpu_conv_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice);

/** Bytes of scratch for @threads threads; INT64_MAX on overflow. */
int64_t kiln_cpu_conv_scratch_size(const KilnCpuConv *conv, int threads);

/** out = tail(conv(in, weights) + bias). Extents of zero are fine. */
void kiln_cpu_conv_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

/** Counts the terms of a direct convolution and returns its kind. Terms: products, in units of
 * kiln_gemm_cost(); bytes read and written once; the call. By taps: products; the work around them;
 * bytes of the weights; the call. Depthwise: see kiln_depthwise_terms(). */
KilnCpuCostKind kiln_direct_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

/* --- transposed convolution, with the same interface; the tail has no residual --- */

KilnConvForm kiln_cpu_conv_transpose_best_form(const KilnCpuConv *conv);
int64_t kiln_cpu_conv_transpose_pack_size(const KilnCpuConv *conv);
void kiln_cpu_conv_transpose_pack(const KilnCpuConv *conv, const void *src, float *dst,
                                  KilnSlice slice);
int64_t kiln_cpu_conv_transpose_scratch_size(const KilnCpuConv *conv, int threads);
void kiln_cpu_conv_transpose_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

/** Terms: products, in units of kiln_gemm_cost(); bytes that the products add to the result; bytes
 * of the result; the call. */
void kiln_transposed_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

#endif
