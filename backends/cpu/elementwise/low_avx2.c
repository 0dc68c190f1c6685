/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over numbers of 8 bits and fewer, for AVX2. */
#define LOW kiln_cpu_low_avx2
#include "backends/cpu/elementwise/low_loops.h"
