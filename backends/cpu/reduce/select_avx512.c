/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over keys, for AVX-512. */
#define SELECT kiln_cpu_select_avx512
#include "backends/cpu/reduce/select_loops.h"
