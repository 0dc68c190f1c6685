/* SPDX-License-Identifier: Apache-2.0 */
/* 32 bytes of each row at once, then 16; of stride 2 the even ones are kept. */
#include "backends/cpu/integer/byte_windows.h"

#include <immintrin.h>

enum {
    LANES = 32,
    FEW = 16,
};

static inline __m256i
largest_of(const KilnCpuByteWindows *w, const uint8_t *x)
{
    const __m256i flip = _mm256_set1_epi8((char)w->flip);
    __m256i best = _mm256_setzero_si256();
    for (int64_t row = 0; row < w->rows; row++, x += w->pitch) {
        for (int64_t k = 0; k < w->taps; k++) {
            const void *at = x + k * w->dilation;
            best = _mm256_max_epu8(best, _mm256_xor_si256(_mm256_loadu_si256(at), flip));
        }
    }
    return _mm256_xor_si256(best, flip);
}

static inline __m128i
largest_of_few(const KilnCpuByteWindows *w, const uint8_t *x)
{
    const __m128i flip = _mm_set1_epi8((char)w->flip);
    __m128i best = _mm_setzero_si128();
    for (int64_t row = 0; row < w->rows; row++, x += w->pitch) {
        for (int64_t k = 0; k < w->taps; k++) {
            const void *at = x + k * w->dilation;
            best = _mm_max_epu8(best, _mm_xor_si128(_mm_loadu_si128(at), flip));
        }
    }
    return _mm_xor_si128(best, flip);
}

static inline __m128i
even_of(__m256i x)
{
    const __m256i words = _mm256_and_si256(x, _mm256_set1_epi16(0xff));
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

static inline __m128i
even_of_few(__m128i x)
{
    return _mm_packus_epi16(_mm_and_si128(x, _mm_set1_epi16(0xff)), _mm_setzero_si128());
}

void
kiln_cpu_largest_bytes_avx2(const KilnCpuByteWindows *w)
{
    KilnCpuByteWindows rest = *w;
    int64_t i = 0;
    for (; w->stride == 1 && i + LANES <= w->n; i += LANES)
        _mm256_storeu_si256((__m256i *)(void *)(w->out + i), largest_of(w, w->x + i));
    for (; w->stride == 1 && i + FEW <= w->n; i += FEW)
        _mm_storeu_si128((__m128i *)(void *)(w->out + i), largest_of_few(w, w->x + i));
    /* The last byte that is read must be in a window. */
    for (; w->stride == 2 && i + LANES / 2 < w->n; i += LANES / 2)
        _mm_storeu_si128((__m128i *)(void *)(w->out + i), even_of(largest_of(w, w->x + 2 * i)));
    for (; w->stride == 2 && i + FEW / 2 < w->n; i += FEW / 2)
        _mm_storel_epi64((__m128i *)(void *)(w->out + i),
                         even_of_few(largest_of_few(w, w->x + 2 * i)));
    rest.out += i;
    rest.x += i * w->stride;
    rest.n -= i;
    kiln_cpu_largest_bytes_portable(&rest);
}
