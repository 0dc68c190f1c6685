/* SPDX-License-Identifier: Apache-2.0 */
/* integer_simd_x86.h for 256-bit vectors. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_SIMD_AVX2_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_SIMD_AVX2_H

#include <immintrin.h>

#define VI __m256i
#define LANES 8
#define ROWS 4
#define COLS 16
#define V(op) _mm256_##op
#define VF __m256
#define BITS(op) _mm256_##op##_si256
#define WORDS(v, index) _mm256_permutevar8x32_epi32(v, index)
/* Returns the low bytes of 16 numbers. */
static inline __m128i
low_bytes(const __m256i v[2])
{
    const __m256i byte = _mm256_set1_epi32(0xff);
    const __m256i words =
        _mm256_packus_epi32(_mm256_and_si256(v[0], byte), _mm256_and_si256(v[1], byte));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
}

#define STORE_BLOCK(to, steps) _mm_storeu_si128(to, low_bytes(steps))
#include "backends/cpu/integer/integer_simd_x86.h"

#endif
