/* SPDX-License-Identifier: Apache-2.0 */
/* More of the vector vocabulary, for AVX2: comparisons, selection, bits, rounding. B is a truth
 * value per lane (all bits or none), VI 8 integers of 32 bits. */
#ifndef KILN_BACKENDS_CPU_SIMD_SIMD_OPS_AVX2_H
#define KILN_BACKENDS_CPU_SIMD_SIMD_OPS_AVX2_H

#include "backends/cpu/simd/simd_avx2.h"

#include <string.h>

#define B __m256
#define VI __m256i
#define V_SUB(a, b) _mm256_sub_ps(a, b)
#define V_DIV(a, b) _mm256_div_ps(a, b)
#define V_SQRT(x) _mm256_sqrt_ps(x)
/* a b + c and c - a b, rounded once. */
#define V_FUSED(a, b, c) _mm256_fmadd_ps(a, b, c)
#define V_FUSED_FROM(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define V_FLOOR(x) _mm256_floor_ps(x)
#define V_CEIL(x) _mm256_ceil_ps(x)
#define V_ROUND(x) _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
/* Comparisons except V_NAN are false for a NaN. */
#define V_LT(a, b) _mm256_cmp_ps(a, b, _CMP_LT_OQ)
#define V_LE(a, b) _mm256_cmp_ps(a, b, _CMP_LE_OQ)
#define V_EQ(a, b) _mm256_cmp_ps(a, b, _CMP_EQ_OQ)
#define V_NAN(x) _mm256_cmp_ps(x, x, _CMP_UNORD_Q)
#define V_SELECT(b, yes, no) _mm256_blendv_ps(no, yes, b)
#define V_ABS(x) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x)
#define V_NEG(x) _mm256_xor_ps(x, _mm256_set1_ps(-0.0f))
#define V_COPYSIGN(x, sign) _mm256_or_ps(V_ABS(x), _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)))
#define V_AND(a, b) _mm256_and_ps(a, b) /* of the bits */
#define V_OR(a, b) _mm256_or_ps(a, b)
#define V_BITS(x) _mm256_castps_si256(x)
#define V_FROM_BITS(i) _mm256_castsi256_ps(i)
#define VI_SET1(i) _mm256_set1_epi32(i)
#define VI_ADD(a, b) _mm256_add_epi32(a, b)
#define VI_SUB(a, b) _mm256_sub_epi32(a, b)
#define VI_SHL(a, n) _mm256_slli_epi32(a, n)
#define VI_SHR(a, n) _mm256_srai_epi32(a, n) /* keeps the sign */
#define VI_TO_V(i) _mm256_cvtepi32_ps(i)
#define V_SCALE(p, n_float, n_int) ((void)(n_float), scale(p, n_int))
/* One value of all lanes. A sum adds them in halves: lanes k and k + 4, ... */
#define V_SUM(x) sum_lanes(x)
#define V_LARGEST(x) largest_lane(x) /* no lane is NaN */
#define V_ANY(b) (_mm256_movemask_ps(b) != 0)
#define V_LOAD_EVERY(p, stride) load_every(p, stride)
#define V_LOAD_BOOL(p) load_bool(p, 8)
#define V_LOAD_BOOL_SOME(p, n) load_bool(p, n)
#define V_STORE_BOOL(p, b) store_bool(p, 8, b)
#define V_STORE_BOOL_SOME(p, n, b) store_bool(p, n, b)

/* p × 2^n for n from -252 to 254, in two products. Only the last can round. */
static inline V
scale(V p, VI n)
{
    VI half = VI_SHR(n, 1), rest = VI_SUB(n, half);
    p = V_MUL(p, V_FROM_BITS(VI_SHL(VI_ADD(half, VI_SET1(127)), 23)));
    return V_MUL(p, V_FROM_BITS(VI_SHL(VI_ADD(rest, VI_SET1(127)), 23)));
}

/* Bytes of bool: read as "not 0", written as 0 and 1. */
static inline B
load_bool(const uint8_t *p, int64_t n)
{
    uint64_t bytes = 0;
    memcpy(&bytes, p, (size_t)n);
    __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)bytes));
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()));
}

static inline void
store_bool(uint8_t *p, int64_t n, B b)
{
    __m256i lanes = _mm256_castps_si256(b);
    __m128i half =
        _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    __m128i bytes = _mm_and_si128(_mm_packs_epi16(half, half), _mm_set1_epi8(1));
    uint64_t word = (uint64_t)_mm_cvtsi128_si64(bytes);
    memcpy(p, &word, (size_t)n);
}

static inline float
sum_lanes(V x)
{
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}

static inline float
largest_lane(V x)
{
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

/* p[0], p[stride] … May read all floats up to p[8 stride - 1]. */
static inline V
load_every(const float *p, int64_t stride)
{
    if (stride == 1)
        return V_LOAD(p);
    if (stride == 2)
        return V_EVENS(V_LOAD(p), V_LOAD(p + 8));
    float lanes[8];
    for (int i = 0; i < 8; i++)
        lanes[i] = p[i * stride];
    return V_LOAD(lanes);
}

#endif
