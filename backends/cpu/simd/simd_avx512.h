/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary of the kernel templates, for AVX-512: 16 floats. */
#ifndef KILN_BACKENDS_CPU_SIMD_SIMD_AVX512_H
#define KILN_BACKENDS_CPU_SIMD_SIMD_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define V __m512
#define VW 16
#define MASK __mmask16
#define V_MASK(n) ((n) >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << ((n) > 0 ? (n) : 0)) - 1))
#define V_LANES(first, end) ((__mmask16)(V_MASK(end) & ~V_MASK(first)))
#define V_SET1(x) _mm512_set1_ps(x)
#define V_LOAD(p) _mm512_loadu_ps(p)
#define V_LOAD_SOME(p, mask) _mm512_maskz_loadu_ps(mask, p)
#define V_STORE(p, x) _mm512_storeu_ps(p, x)
#define V_STORE_SOME(p, mask, x) _mm512_mask_storeu_ps(p, mask, x)
#define V_ADD(a, b) _mm512_add_ps(a, b)
#define V_MUL(a, b) _mm512_mul_ps(a, b)
#define V_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define V_MIN(a, b) _mm512_min_ps(a, b) /* a NaN in b stays */
#define V_MAX(a, b) _mm512_max_ps(a, b)
/* Every other element of a, then of b, from the first or the second on. */
#define V_EVENS(a, b)                                                                              \
    _mm512_permutex2var_ps(                                                                        \
        a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b)
#define V_ODDS(a, b)                                                                               \
    _mm512_permutex2var_ps(                                                                        \
        a, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), b)
/* Interleaves the first halves of a and b, or the second halves. */
#define V_ZIP_LOW(a, b)                                                                            \
    _mm512_permutex2var_ps(                                                                        \
        a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b)
#define V_ZIP_HIGH(a, b)                                                                           \
    _mm512_permutex2var_ps(                                                                        \
        a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b)
/* Places relative to the first, each less than two vectors on; loads the floats at them. */
#define PLACES __m512i
#define V_PLACES(at) _mm512_sub_epi32(_mm512_loadu_si512(at), _mm512_set1_epi32(*(at)))
#define V_PICK(p, places) _mm512_permutex2var_ps(V_LOAD(p), places, V_LOAD((p) + 16))

#endif
