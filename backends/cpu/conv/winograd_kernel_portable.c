/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of Winograd convolutions for any processor. */
#include "backends/cpu/simd/simd_ops_portable.h"

#define KERNELS kiln_winograd_kernels_portable
#include "backends/cpu/conv/winograd_loops.h"
