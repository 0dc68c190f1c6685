/* SPDX-License-Identifier: Apache-2.0 */
/* integer_simd_x86.h for 256-bit vectors. */
#pragma once

#define VI __m256i
#define LANES 8
#define ROWS 4
#define COLS 16
#define V(op) _mm256_##op
#define BITS(op) _mm256_##op##_si256
#define WIDEN(p) _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#include "backends/cpu/integer_simd_x86.h"
