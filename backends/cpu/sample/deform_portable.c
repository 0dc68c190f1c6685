/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of deformable convolutions, for any processor. */
#include "backends/cpu/simd/simd_portable.h"

#define DEFORM_LOOPS kiln_cpu_deform_portable
#include "backends/cpu/sample/deform_loops.h"
