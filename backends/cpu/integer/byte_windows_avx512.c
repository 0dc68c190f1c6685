/* SPDX-License-Identifier: Apache-2.0 */
/* 64 bytes of each row at once, with masks at its end; of stride 2 the even ones are kept. */
#include "backends/cpu/integer/byte_windows.h"

#include <immintrin.h>

enum {
    LANES = 64,
};

__attribute__((always_inline)) static inline __m512i
fold(const KilnCpuByteWindows *w, const uint8_t *x, __mmask64 mask, int64_t rows, int64_t taps)
{
    const __m512i flip = _mm512_set1_epi8((char)w->flip);
    const int64_t pitch = w->pitch, dilation = w->dilation;
    __m512i best = _mm512_setzero_si512();
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t k = 0; k < taps; k++) {
            const __m512i bytes = _mm512_maskz_loadu_epi8(mask, x + row * pitch + k * dilation);
            best = _mm512_max_epu8(best, _mm512_xor_si512(bytes, flip));
        }
    }
    return _mm512_xor_si512(best, flip);
}

/* Of the columns in @mask, from the byte at @x on. Most windows are of these sizes. */
static inline __m512i
largest_of(const KilnCpuByteWindows *w, const uint8_t *x, __mmask64 mask)
{
    if (w->rows == 3 && w->taps == 3)
        return fold(w, x, mask, 3, 3);
    if (w->rows == 2 && w->taps == 2)
        return fold(w, x, mask, 2, 2);
    return fold(w, x, mask, w->rows, w->taps);
}

/* The first @n lanes. */
static inline __mmask64
first(int64_t n)
{
    return n < LANES ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0;
}

void
kiln_cpu_largest_bytes_avx512(const KilnCpuByteWindows *w)
{
    if (w->stride == 1) {
        for (int64_t i = 0; i < w->n; i += LANES) {
            const __mmask64 mask = first(w->n - i);
            const __m512i best = largest_of(w, w->x + i, mask);
            if (i + LANES <= w->n + w->spare)
                _mm512_storeu_si512(w->out + i, best);
            else
                _mm512_mask_storeu_epi8(w->out + i, mask, best);
        }
    } else if (w->stride == 2) {
        for (int64_t i = 0; i < w->n; i += LANES / 2) {
            const __m512i best = largest_of(w, w->x + 2 * i, first(2 * (w->n - i) - 1));
            const __m256i even = _mm512_cvtepi16_epi8(best);
            if (i + LANES / 2 <= w->n + w->spare)
                _mm256_storeu_si256((__m256i *)(void *)(w->out + i), even);
            else
                _mm256_mask_storeu_epi8(w->out + i, (__mmask32)first(w->n - i), even);
        }
    } else {
        kiln_cpu_largest_bytes_portable(w);
    }
}
