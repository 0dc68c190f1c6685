/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise loops for AVX2. */
#include "backends/cpu/simd/simd_ops_avx2.h"

#define ROWS kiln_cpu_rows_avx2
#include "backends/cpu/elementwise/elementwise_loops.h"
