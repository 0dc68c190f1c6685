/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent cells for AVX2. */
#include "backends/cpu/simd/simd_ops_avx2.h"

#define CELLS kiln_cpu_cells_avx2
#define CELL_ROWS 2
#include "backends/cpu/recurrent/recurrent_cells_loops.h"
