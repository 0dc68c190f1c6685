/* SPDX-License-Identifier: Apache-2.0 */
/* How convolutions and products store what they have summed: with their tails, of which each part
 * does to an element what its instruction does, rounded in between. */
#ifndef KILN_BACKENDS_REF_ELEMENTWISE_TAIL_H
#define KILN_BACKENDS_REF_ELEMENTWISE_TAIL_H

#include "backends/ref/gemm/inner_loops.h"
#include "ir/kernel.h"
#include "ir/tail.h"

/** Stores @n sums as elements @first … of the result of @args. */
void kiln_ref_store_sums(const KilnKernelArgs *args, const RefRows *rows, int64_t first,
                         const RefValue *sums, int64_t n);

#endif
