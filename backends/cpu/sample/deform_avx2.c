/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of deformable convolutions, for AVX2. */
#include "backends/cpu/simd/simd_avx2.h"

#define DEFORM_LOOPS kiln_cpu_deform_avx2
#include "backends/cpu/sample/deform_loops.h"
