/* SPDX-License-Identifier: Apache-2.0 */
/* The tops of trees for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define TREE_TOP kiln_cpu_tree_top_portable
#include "backends/cpu/learn/tree_top_loops.h"
