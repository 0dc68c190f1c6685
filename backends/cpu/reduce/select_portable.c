/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over keys, for any processor. */
#define SELECT kiln_cpu_select_portable
#include "backends/cpu/reduce/select_loops.h"
