/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of regions, for AVX2. */
#include "backends/cpu/simd/simd_avx2.h"

#define REGION_LOOPS kiln_cpu_region_avx2
#include "backends/cpu/sample/region_loops.h"
