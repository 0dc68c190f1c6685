/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over columns, for AVX-512. */
#define COLUMNS kiln_cpu_columns_avx512
#include "backends/cpu/movement/columns_loops.h"
