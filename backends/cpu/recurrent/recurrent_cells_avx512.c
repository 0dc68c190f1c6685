/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent cells for AVX-512. */
#include "backends/cpu/simd/simd_ops_avx512.h"

#define CELLS kiln_cpu_cells_avx512
#define CELL_ROWS 6
#include "backends/cpu/recurrent/recurrent_cells_loops.h"
