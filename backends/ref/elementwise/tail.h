/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the sums of convolutions and products, with their tails. Each part of a tail rounds its
 * result, as its own instruction would. */
#ifndef KILN_BACKENDS_REF_ELEMENTWISE_TAIL_H
#define KILN_BACKENDS_REF_ELEMENTWISE_TAIL_H

#include "backends/ref/gemm/inner_loops.h"
#include "ir/kernel.h"

/** Applies the tail to @n sums and stores them in the result of @args, from element @first on. */
void kiln_ref_store_sums(const KilnKernelArgs *args, const RefRows *rows, int64_t first,
                         const RefValue *sums, int64_t n);

#endif
