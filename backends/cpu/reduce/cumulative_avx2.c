/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of cumulative sums and products, for AVX2. */
#define CUMULATIVES kiln_cpu_cumulatives_avx2
#include "backends/cpu/reduce/cumulative_loops.h"
