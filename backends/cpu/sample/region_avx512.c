/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of regions, for AVX-512. */
#include "backends/cpu/simd/simd_avx512.h"

#define REGION_LOOPS kiln_cpu_region_avx512
#include "backends/cpu/sample/region_loops.h"
