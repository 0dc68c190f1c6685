/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of linear_attention for AVX-512. */
#include "backends/cpu/simd/simd_ops_avx512.h"

#define RECALL kiln_cpu_recall_avx512
#include "backends/cpu/recurrent/linear_attention_loops.h"
