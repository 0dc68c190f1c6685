/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over columns, for AVX2. */
#define COLUMNS kiln_cpu_columns_avx2
#include "backends/cpu/movement/columns_loops.h"
