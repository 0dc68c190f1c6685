/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of several steps at once, for AVX-512. */
#include "backends/cpu/simd_ops_avx512.h"

#define FUSED kiln_cpu_fused_avx512
#include "backends/cpu/stack_fused_rows.h"
