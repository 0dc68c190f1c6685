/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of several steps at once, for AVX2. */
#include "backends/cpu/simd/simd_ops_avx2.h"

#define FUSED kiln_cpu_fused_avx2
#include "backends/cpu/stack/stack_fused_loops.h"
