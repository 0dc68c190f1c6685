/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of rows with weights, for AVX-512. */
#define WEIGHTED kiln_cpu_weighted_avx512
#include "backends/cpu/movement/weighted_loops.h"
