/* SPDX-License-Identifier: Apache-2.0 */
/* What integer_rows.h needs of 512-bit vectors, but for the dot product. */
#pragma once

#include "backends/cpu/integer_interleave_x86.h"

#include <string.h>

#define VI __m512i
#define LANES 16
#define ROWS 8
#define COLS 48
#define VI_ZERO _mm512_setzero_si512()
#define VI_STORE(p, v) _mm512_storeu_si512(p, v)
#define VI_BYTES(p) _mm512_loadu_si512(p)
#define VI_SPREAD(p) spread(p)

static inline __m512i
spread(const uint8_t *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm512_set1_epi32(bits);
}

/* Pairs of 16 bits, of which the upper ones of weights are 0. */
static inline __m512i
times(__m512i sum, const int8_t *p, int32_t weight)
{
    const __m512i x = _mm512_cvtepi8_epi32(bytes_at(p));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(x, _mm512_set1_epi32(weight & 0xffff)));
}
#define VI_TIMES(sum, p, w) times(sum, p, w)
