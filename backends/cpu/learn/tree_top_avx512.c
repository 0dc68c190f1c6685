/* SPDX-License-Identifier: Apache-2.0 */
/* The tops of trees for AVX-512. */
#include "backends/cpu/simd/simd_ops_avx512.h"

#define TREE_TOP kiln_cpu_tree_top_avx512
#include "backends/cpu/learn/tree_top_loops.h"
