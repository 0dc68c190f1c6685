/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What integer_rows.h needs of x86, for vectors of a width. Included once per instruction set; the
 * file defines VI, LANES, ROWS, COLS and
 *
 *   V(op)      the intrinsic of this width
 *   BITS(op)   the same of bits without a type
 *   WIDEN(p)   LANES signed bytes at p, as i32
 *
 * and has VI_DOT still to choose: dot(), or the instruction.
 */
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VI_ZERO BITS(setzero)()
#define VI_STORE(p, v) BITS(storeu)((VI *)(void *)(p), v)
#define VI_BYTES(p) BITS(loadu)((const VI *)(const void *)(p))
#define VI_SPREAD(p) spread(p)
#define VI_TIMES(sum, p, w) times(sum, p, w)
#define INTERLEAVE(from, to, c) interleave_16(from, to, c)

static inline __m128i
bytes_at(const int8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline VI
spread(const uint8_t *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return V(set1_epi32)(bits);
}

/* Pairs of 16 bits, of which the upper ones of weights are 0. */
static inline VI
times(VI sum, const int8_t *p, int32_t weight)
{
    return V(add_epi32)(sum, V(madd_epi16)(WIDEN(p), V(set1_epi32)(weight & 0xffff)));
}

/* Bytes are widened to 16 bits and multiplied in pairs, whose sums fit 32 bits; the instruction for
 * pairs of bytes would saturate. */
static inline VI
dot(VI sum, VI u, VI s)
{
    const VI u_even = BITS(and)(u, V(set1_epi16)(0xff));
    const VI u_odd = V(srli_epi16)(u, 8), s_odd = V(srai_epi16)(s, 8);
    const VI s_even = V(srai_epi16)(V(slli_epi16)(s, 8), 8);
    sum = V(add_epi32)(sum, V(madd_epi16)(u_even, s_even));
    return V(add_epi32)(sum, V(madd_epi16)(u_odd, s_odd));
}

/* Four rows of bytes side by side, 16 columns at a time. */
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
