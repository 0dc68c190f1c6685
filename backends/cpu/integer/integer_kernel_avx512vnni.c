/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes for AVX-512 with dot products. */
#include "backends/cpu/integer/integer_simd_avx512.h"

#define VI_DOT(sum, u, s) _mm512_dpbusd_epi32(sum, u, s)
#define INTEGER_KERNELS kiln_integer_kernels_avx512vnni
#include "backends/cpu/integer/integer_loops.h"
