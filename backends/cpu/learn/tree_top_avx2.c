/* SPDX-License-Identifier: Apache-2.0 */
/* The tops of trees for AVX2. */
#include "backends/cpu/simd/simd_ops_avx2.h"

#define TREE_TOP kiln_cpu_tree_top_avx2
#include "backends/cpu/learn/tree_top_loops.h"
