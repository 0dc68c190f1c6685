/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution, with the interface of conv.h. The tail has no residual. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_TRANSPOSE_H
#define KILN_BACKENDS_CPU_CONV_CONV_TRANSPOSE_H

#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/cost.h"
#include "ir/slice.h"

int64_t kiln_cpu_conv_transpose_pack_size(const KilnCpuConv *conv);
void kiln_cpu_conv_transpose_pack(const KilnCpuConv *conv, const void *src, float *dst,
                                  KilnSlice slice);
int64_t kiln_cpu_conv_transpose_scratch_size(const KilnCpuConv *conv, int threads);
void kiln_cpu_conv_transpose_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args);

/** Terms: products, in units of kiln_gemm_cost(); bytes that the products add to the result; bytes
 * of the result; the call. */
void kiln_transposed_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

#endif
