/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes for AVX2 without dot products. Bytes are widened to 16 bits and multiplied in
 * pairs, whose sums fit 32 bits; the instruction for pairs of bytes would saturate. */
#include "backends/cpu/integer_simd_avx2.h"

static inline __m256i
dot(__m256i sum, __m256i u, __m256i s)
{
    const __m256i u_even = _mm256_and_si256(u, _mm256_set1_epi16(0xff));
    const __m256i u_odd = _mm256_srli_epi16(u, 8), s_odd = _mm256_srai_epi16(s, 8);
    const __m256i s_even = _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(u_even, s_even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(u_odd, s_odd));
}
#define VI_DOT(sum, u, s) dot(sum, u, s)
#define INTEGER_KERNELS kiln_integer_kernels_avx2
#include "backends/cpu/integer_rows.h"
