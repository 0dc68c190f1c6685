/* SPDX-License-Identifier: Apache-2.0 */
/* integer_simd_x86.h for 512-bit vectors. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_SIMD_AVX512_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_SIMD_AVX512_H

#define VI __m512i
#define LANES 16
#define ROWS 8
#define COLS 48
#define V(op) _mm512_##op
#define VF __m512
#define BITS(op) _mm512_##op##_si512
#define WORDS(v, index) _mm512_permutexvar_epi32(index, v)
#define STORE_BLOCK(to, steps) _mm_storeu_si128(to, _mm512_cvtepi32_epi8((steps)[0]))
#include "backends/cpu/integer/integer_simd_x86.h"

#endif
