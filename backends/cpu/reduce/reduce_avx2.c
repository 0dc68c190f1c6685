/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of reductions, softmax, normalisation and pooling for AVX2. */
#include "backends/cpu/simd/simd_ops_avx2.h"

#define REDUCERS kiln_cpu_reducers_avx2
#include "backends/cpu/reduce/normalize_loops.h"
