/* SPDX-License-Identifier: Apache-2.0 */
/* The x86 macros that integer_loops.h needs, for one width of vectors. One header per width
 * includes it. That header defines VI, LANES, ROWS, COLS and
 *
 *   V(op)                   the intrinsic of this width
 *   BITS(op)                the same for bits without a type
 *   VF                      a vector of f32
 *   WORDS(v, index)         LANES / 4 times four words of v
 *   STORE_BLOCK(to, steps)  stores the low bytes of 16 / LANES vectors
 *
 * The .c file also chooses VI_DOT: dot(), or the instruction. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_SIMD_X86_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_SIMD_X86_H

#include "backends/cpu/integer/integer_kernel.h"
#include "backends/cpu/simd/unrolled.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VI_ZERO BITS(setzero)()
#define VI_STORE(p, v) BITS(storeu)((VI *)(void *)(p), v)
#define VI_BYTES(p) BITS(loadu)((const VI *)(const void *)(p))
#define VI_SPREAD(p) spread(p)
#define VI_SLIDE(p, slide) slide_of(p, slide)
#define SCALE(to, sums, factors, one, steps) scale_16(to, sums, factors, one, steps)
#define INTERLEAVE(from, to, c, flip) interleave_16(from, to, c, flip)

static inline __m128i
bytes_at(const uint8_t *p, __m128i flip)
{
    return _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)p), flip);
}

static inline VI
spread(const void *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return V(set1_epi32)(bits);
}

static inline VI
slide_of(const uint8_t *p, const KilnIntegerSlide *slide)
{
    return V(shuffle_epi8)(WORDS(VI_BYTES(p), VI_BYTES(slide->words)), VI_BYTES(slide->bytes));
}

/* Widens bytes to 16 bits and multiplies them in pairs, whose sums fit 32 bits. The instruction for
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

/* Interleaves four rows of bytes at 16 columns. */
static inline void
interleave_16(const uint8_t *const from[4], uint8_t *to, int64_t c, uint8_t bit)
{
    const __m128i flip = _mm_set1_epi8((char)bit);
    const __m128i a = bytes_at(from[0] + c, flip), b = bytes_at(from[1] + c, flip);
    const __m128i d = bytes_at(from[2] + c, flip), e = bytes_at(from[3] + c, flip);
    const __m128i low = _mm_unpacklo_epi8(a, b), low2 = _mm_unpacklo_epi8(d, e);
    const __m128i high = _mm_unpackhi_epi8(a, b), high2 = _mm_unpackhi_epi8(d, e);
    __m128i *out = (__m128i *)(void *)(to + c * 4);
    _mm_storeu_si128(out, _mm_unpacklo_epi16(low, low2));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(low, low2));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(high, high2));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(high, high2));
}

/* The conversion rounds half to even. The bounds keep it within i32. */
__attribute__((always_inline)) static inline void
scale_16(uint8_t *to, const int32_t *sums, const float *factors, bool one,
         const KilnIntegerSteps *s)
{
    VI steps[16 / LANES];
    UNROLLED
    for (int v = 0; v < 16 / LANES; v++) {
        const VI sum = V(add_epi32)(VI_BYTES(sums + v * LANES), V(set1_epi32)(s->add));
        VF x = V(mul_ps)(V(cvtepi32_ps)(sum),
                         one ? V(set1_ps)(*factors) : V(loadu_ps)(factors + v * LANES));
        x = V(min_ps)(V(max_ps)(x, V(set1_ps)(s->least)), V(set1_ps)(s->most));
        steps[v] = V(add_epi32)(V(cvtps_epi32)(x), V(set1_epi32)(s->zero));
    }
    STORE_BLOCK((__m128i *)(void *)to, steps);
}

#endif
