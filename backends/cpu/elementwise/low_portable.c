/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over numbers of 8 bits and fewer, for any processor. */
#define LOW kiln_cpu_low_portable
#include "backends/cpu/elementwise/low_loops.h"
