/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of cumulative sums and products, for any processor. */
#define CUMULATIVES kiln_cpu_cumulatives_portable
#include "backends/cpu/reduce/cumulative_loops.h"
