/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise loops for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define ROWS kiln_cpu_rows_portable
#include "backends/cpu/elementwise/elementwise_loops.h"
