/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary of the kernel templates, for AVX2 with FMA: 8 floats. */
#ifndef KILN_BACKENDS_CPU_SIMD_SIMD_AVX2_H
#define KILN_BACKENDS_CPU_SIMD_SIMD_AVX2_H

#include <immintrin.h>
#include <stdint.h>

/* Mask of the lanes below n, for vmaskmov. */
static inline __m256i
lanes_below(int64_t n)
{
    int32_t limit = n > 8 ? 8 : n < 0 ? 0 : (int32_t)n;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(limit), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

#define V __m256
#define VW 8
#define MASK __m256i
#define V_MASK(n) lanes_below(n)
#define V_LANES(first, end) _mm256_andnot_si256(lanes_below(first), lanes_below(end))
#define V_SET1(x) _mm256_set1_ps(x)
#define V_LOAD(p) _mm256_loadu_ps(p)
#define V_LOAD_SOME(p, mask) _mm256_maskload_ps(p, mask)
#define V_STORE(p, x) _mm256_storeu_ps(p, x)
#define V_STORE_SOME(p, mask, x) _mm256_maskstore_ps(p, mask, x)
#define V_ADD(a, b) _mm256_add_ps(a, b)
#define V_MUL(a, b) _mm256_mul_ps(a, b)
#define V_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define V_MIN(a, b) _mm256_min_ps(a, b) /* a NaN in b stays */
#define V_MAX(a, b) _mm256_max_ps(a, b)
/* Every other element of a, then of b, from the first or the second on. */
#define V_EVENS(a, b) quarters_in_order(_mm256_shuffle_ps(a, b, 0x88))
#define V_ODDS(a, b) quarters_in_order(_mm256_shuffle_ps(a, b, 0xdd))
/* Interleaves the first halves of a and b, or the second halves. */
#define V_ZIP_LOW(a, b)                                                                            \
    _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20)
#define V_ZIP_HIGH(a, b)                                                                           \
    _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31)
/* Places relative to the first, each less than two vectors on; loads the floats at them. */
#define PLACES __m256i
#define V_PLACES(at)                                                                               \
    _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(at)),                      \
                     _mm256_set1_epi32(*(at)))
#define V_PICK(p, places) pick_places(V_LOAD(p), V_LOAD((p) + 8), places)

/* Orders the quarters of a shuffle, which works on each half by itself. */
static inline V
quarters_in_order(V x)
{
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xd8));
}

/* Selects lanes of two vectors by number. The fourth bit of a number selects the vector. */
static inline V
pick_places(V low, V high, __m256i places)
{
    V in_low = _mm256_permutevar8x32_ps(low, places),
      in_high = _mm256_permutevar8x32_ps(high, places);
    return _mm256_blendv_ps(in_low, in_high,
                            _mm256_castsi256_ps(_mm256_slli_epi32(places, 31 - 3)));
}

#endif
