/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of bytes as 16 of 16 entries each, which a shuffle looks up, or two of 128, which VBMI
 * permutes. */
#include "backends/cpu/elementwise/look_up.h"
#include "backends/cpu/simd/unrolled.h"

#include <immintrin.h>

enum {
    PARTS = 16,
    PART = 16,
    LANES = 64,
};

void
kiln_cpu_look_up_avx512(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table)
{
    __m512i parts[PARTS];
    for (int k = 0; k < PARTS; k++)
        parts[k] = _mm512_broadcast_i32x4(
            _mm_loadu_si128((const __m128i *)(const void *)(table + PART * k)));
    const __m512i nibble = _mm512_set1_epi8(PART - 1);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const __m512i at = _mm512_loadu_si512(x + i);
        const __m512i part = _mm512_and_si512(_mm512_srli_epi16(at, 4), nibble);
        const __m512i index = _mm512_and_si512(at, nibble);
        __m512i out = _mm512_setzero_si512();
        UNROLLED
        for (int k = 0; k < PARTS; k++) {
            const __mmask64 here = _mm512_cmpeq_epi8_mask(part, _mm512_set1_epi8((char)k));
            out = _mm512_mask_shuffle_epi8(out, here, parts[k], index);
        }
        _mm512_storeu_si512(to + i, out);
    }
    kiln_cpu_look_up_portable(to + i, x + i, n - i, table);
}

__attribute__((target("avx512vbmi"))) void
kiln_cpu_look_up_avx512vbmi(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table)
{
    __m512i parts[4];
    for (int k = 0; k < 4; k++)
        parts[k] = _mm512_loadu_si512(table + LANES * k);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const __m512i at = _mm512_loadu_si512(x + i);
        const __m512i low = _mm512_permutex2var_epi8(parts[0], at, parts[1]);
        const __m512i high = _mm512_permutex2var_epi8(parts[2], at, parts[3]);
        _mm512_storeu_si512(to + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
    }
    kiln_cpu_look_up_portable(to + i, x + i, n - i, table);
}
