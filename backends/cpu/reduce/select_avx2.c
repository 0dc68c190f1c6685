/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over keys, for AVX2. */
#define SELECT kiln_cpu_select_avx2
#include "backends/cpu/reduce/select_loops.h"
