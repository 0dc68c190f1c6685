/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of bytes as 16 of 16 entries each, which a shuffle looks up. */
#include "backends/cpu/elementwise/look_up.h"
#include "backends/cpu/simd/unrolled.h"

#include <immintrin.h>

enum {
    PARTS = 16,
    PART = 16,
    LANES = 32,
};

void
kiln_cpu_look_up_avx2(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table)
{
    __m256i parts[PARTS];
    for (int k = 0; k < PARTS; k++)
        parts[k] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)(table + PART * k)));
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(x + i));
        __m256i out = _mm256_setzero_si256();
        UNROLLED
        for (int k = 0; k < PARTS; k++) {
            /* Shuffles make 0 of indices with the sign bit, which all but 0 … 15 get. */
            const __m256i index = _mm256_adds_epu8(at, _mm256_set1_epi8(0x80 - PART));
            out = _mm256_or_si256(out, _mm256_shuffle_epi8(parts[k], index));
            at = _mm256_sub_epi8(at, _mm256_set1_epi8(PART));
        }
        _mm256_storeu_si256((__m256i *)(void *)(to + i), out);
    }
    kiln_cpu_look_up_portable(to + i, x + i, n - i, table);
}
