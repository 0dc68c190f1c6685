/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes for AVX-512 without dot products. */
#include "backends/cpu/integer/integer_simd_avx512.h"
#include "backends/cpu/integer/integer_simd_x86.h"

#define VI_DOT(sum, u, s) dot(sum, u, s)
#define INTEGER_KERNELS kiln_integer_kernels_avx512
#include "backends/cpu/integer/integer_loops.h"
