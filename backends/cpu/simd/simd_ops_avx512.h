/* SPDX-License-Identifier: Apache-2.0 */
/* More of the vector vocabulary, for AVX-512: comparisons, selection, bits, rounding. B is a truth
 * value per lane, VI 16 integers of 32 bits. */
#ifndef KILN_BACKENDS_CPU_SIMD_SIMD_OPS_AVX512_H
#define KILN_BACKENDS_CPU_SIMD_SIMD_OPS_AVX512_H

#include "backends/cpu/simd/simd_avx512.h"

#define B __mmask16
#define VI __m512i
#define V_SUB(a, b) _mm512_sub_ps(a, b)
#define V_DIV(a, b) _mm512_div_ps(a, b)
#define V_SQRT(x) _mm512_sqrt_ps(x)
/* a b + c and c - a b, rounded once. */
#define V_FUSED(a, b, c) _mm512_fmadd_ps(a, b, c)
#define V_FUSED_FROM(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define V_FLOOR(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define V_CEIL(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
#define V_ROUND(x) _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
/* Comparisons except V_NAN are false for a NaN. */
#define V_LT(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define V_LE(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)
#define V_EQ(a, b) _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define V_NAN(x) _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q)
#define V_SELECT(b, yes, no) _mm512_mask_blend_ps(b, no, yes)
#define V_ABS(x) _mm512_abs_ps(x)
#define V_NEG(x) _mm512_xor_ps(x, _mm512_set1_ps(-0.0f))
#define V_COPYSIGN(x, sign) _mm512_or_ps(V_ABS(x), _mm512_and_ps(sign, _mm512_set1_ps(-0.0f)))
#define V_AND(a, b) _mm512_and_ps(a, b) /* of the bits */
#define V_OR(a, b) _mm512_or_ps(a, b)
#define V_BITS(x) _mm512_castps_si512(x)
#define V_FROM_BITS(i) _mm512_castsi512_ps(i)
#define VI_SET1(i) _mm512_set1_epi32(i)
#define VI_ADD(a, b) _mm512_add_epi32(a, b)
#define VI_SUB(a, b) _mm512_sub_epi32(a, b)
#define VI_SHL(a, n) _mm512_slli_epi32(a, n)
#define VI_SHR(a, n) _mm512_srai_epi32(a, n) /* keeps the sign */
#define VI_TO_V(i) _mm512_cvtepi32_ps(i)
/* p × 2^n, rounded once. @n is whole and given as float and as int. */
#define V_SCALE(p, n_float, n_int) ((void)(n_int), _mm512_scalef_ps(p, n_float))
/* One value of all lanes. A sum adds them in halves: lanes k and k + 8, then k and k + 4, ... */
#define V_SUM(x) sum_lanes(x)
#define V_LARGEST(x) _mm512_reduce_max_ps(x) /* no lane is NaN */
#define V_ANY(b) ((b) != 0)
#define V_LOAD_EVERY(p, stride) load_every(p, stride)
/* Bytes of bool: read as "not 0", written as 0 and 1. */
#define V_LOAD_BOOL(p) load_bool(p, 16)
#define V_LOAD_BOOL_SOME(p, n) load_bool(p, n)
#define V_STORE_BOOL(p, b) _mm_storeu_si128((__m128i *)(void *)(p), _mm_maskz_set1_epi8(b, 1))
#define V_STORE_BOOL_SOME(p, n, b) _mm_mask_storeu_epi8(p, V_MASK(n), _mm_maskz_set1_epi8(b, 1))

static inline float
sum_lanes(V x)
{
    __m256 y = _mm256_add_ps(_mm512_castps512_ps256(x),
                             _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
    __m128 z = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    z = _mm_add_ps(z, _mm_movehl_ps(z, z));
    return _mm_cvtss_f32(_mm_add_ss(z, _mm_movehdup_ps(z)));
}

static inline B
load_bool(const uint8_t *p, int64_t n)
{
    __m128i bytes = _mm_maskz_loadu_epi8(V_MASK(n), p);
    return _mm_test_epi8_mask(bytes, bytes);
}

/* p[0], p[stride] … May read all floats up to p[16 stride - 1]. */
static inline V
load_every(const float *p, int64_t stride)
{
    if (stride == 1)
        return V_LOAD(p);
    if (stride == 2)
        return V_EVENS(V_LOAD(p), V_LOAD(p + 16));
    float lanes[16];
    for (int i = 0; i < 16; i++)
        lanes[i] = p[i * stride];
    return V_LOAD(lanes);
}

#endif
