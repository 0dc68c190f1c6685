/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of several steps at once, for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define FUSED kiln_cpu_fused_portable
#include "backends/cpu/stack/stack_fused_loops.h"
