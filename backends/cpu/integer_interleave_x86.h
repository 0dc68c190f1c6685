/* SPDX-License-Identifier: Apache-2.0 */
/* Four rows of bytes side by side, 16 columns at a time: for x86. */
#pragma once

#include <immintrin.h>
#include <stdint.h>

static inline __m128i
bytes_at(const int8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline void
interleave_16(const int8_t *const from[4], int8_t *to, int c)
{
    const __m128i a = bytes_at(from[0] + c), b = bytes_at(from[1] + c);
    const __m128i d = bytes_at(from[2] + c), e = bytes_at(from[3] + c);
    const __m128i low = _mm_unpacklo_epi8(a, b), low2 = _mm_unpacklo_epi8(d, e);
    const __m128i high = _mm_unpackhi_epi8(a, b), high2 = _mm_unpackhi_epi8(d, e);
    __m128i *out = (__m128i *)(void *)(to + c * 4);
    _mm_storeu_si128(out, _mm_unpacklo_epi16(low, low2));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(low, low2));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(high, high2));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(high, high2));
}
#define INTERLEAVE(from, to, c) interleave_16(from, to, c)
