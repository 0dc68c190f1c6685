/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms of Winograd convolutions for AVX-512. */
#include "backends/cpu/simd/simd_ops_avx512.h"

#define KERNELS kiln_winograd_kernels_avx512
#include "backends/cpu/conv/winograd_loops.h"
