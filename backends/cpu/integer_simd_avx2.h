/* SPDX-License-Identifier: Apache-2.0 */
/* What integer_rows.h needs of 256-bit vectors, but for the dot product. */
#pragma once

#include "backends/cpu/integer_interleave_x86.h"

#include <string.h>

#define VI __m256i
#define LANES 8
#define ROWS 4
#define COLS 16
#define VI_ZERO _mm256_setzero_si256()
#define VI_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define VI_BYTES(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define VI_SPREAD(p) spread(p)

static inline __m256i
spread(const uint8_t *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm256_set1_epi32(bits);
}

/* Pairs of 16 bits, of which the upper ones of weights are 0. */
static inline __m256i
times(__m256i sum, const int8_t *p, int32_t weight)
{
    const __m256i x = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, _mm256_set1_epi32(weight & 0xffff)));
}
#define VI_TIMES(sum, p, w) times(sum, p, w)
