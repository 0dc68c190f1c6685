/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes for AVX-512 without dot products: those of AVX2, in wider vectors. */
#include "backends/cpu/integer_simd_avx512.h"

static inline __m512i
dot(__m512i sum, __m512i u, __m512i s)
{
    const __m512i u_even = _mm512_and_si512(u, _mm512_set1_epi16(0xff));
    const __m512i u_odd = _mm512_srli_epi16(u, 8), s_odd = _mm512_srai_epi16(s, 8);
    const __m512i s_even = _mm512_srai_epi16(_mm512_slli_epi16(s, 8), 8);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(u_even, s_even));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(u_odd, s_odd));
}
#define VI_DOT(sum, u, s) dot(sum, u, s)
#define INTEGER_KERNELS kiln_integer_kernels_avx512
#include "backends/cpu/integer_rows.h"
