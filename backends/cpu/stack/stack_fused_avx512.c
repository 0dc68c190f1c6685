/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of several steps at once, for AVX-512. */
#include "backends/cpu/simd/simd_ops_avx512.h"

#define FUSED kiln_cpu_fused_avx512
#include "backends/cpu/stack/stack_fused_loops.h"
