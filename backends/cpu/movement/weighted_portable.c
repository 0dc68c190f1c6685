/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of rows with weights, for any processor. */
#define WEIGHTED kiln_cpu_weighted_portable
#include "backends/cpu/movement/weighted_loops.h"
