/* SPDX-License-Identifier: Apache-2.0 */
/* integer_simd_x86.h for 512-bit vectors. */
#pragma once

#define VI __m512i
#define LANES 16
#define ROWS 8
#define COLS 48
#define V(op) _mm512_##op
#define BITS(op) _mm512_##op##_si512
#define WIDEN(p) _mm512_cvtepi8_epi32(bytes_at(p))
#include "backends/cpu/integer_simd_x86.h"
