/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise loops for AVX-512. */
#include "backends/cpu/simd/simd_ops_avx512.h"

#define ROWS kiln_cpu_rows_avx512
#include "backends/cpu/elementwise/elementwise_loops.h"
