/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of linear_attention for AVX2. */
#include "backends/cpu/simd/simd_ops_avx2.h"

#define RECALL kiln_cpu_recall_avx2
#include "backends/cpu/recurrent/linear_attention_loops.h"
