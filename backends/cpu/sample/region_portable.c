/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of regions, for any processor. */
#include "backends/cpu/simd/simd_portable.h"

#define REGION_LOOPS kiln_cpu_region_portable
#include "backends/cpu/sample/region_loops.h"
