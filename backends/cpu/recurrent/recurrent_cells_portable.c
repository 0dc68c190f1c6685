/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent cells for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define CELLS kiln_cpu_cells_portable
#define CELL_ROWS 2
#include "backends/cpu/recurrent/recurrent_cells_loops.h"
