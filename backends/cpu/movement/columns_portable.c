/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over columns, for any processor. */
#define COLUMNS kiln_cpu_columns_portable
#include "backends/cpu/movement/columns_loops.h"
