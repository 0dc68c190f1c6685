/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes for AVX2 with dot products. */
#include "backends/cpu/integer/integer_simd_avx2.h"

#define VI_DOT(sum, u, s) _mm256_dpbusd_avx_epi32(sum, u, s)
#define INTEGER_KERNELS kiln_integer_kernels_avxvnni
#include "backends/cpu/integer/integer_loops.h"
