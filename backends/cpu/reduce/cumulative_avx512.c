/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of cumulative sums and products, for AVX-512. */
#define CUMULATIVES kiln_cpu_cumulatives_avx512
#include "backends/cpu/reduce/cumulative_loops.h"
