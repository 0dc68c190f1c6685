/* SPDX-License-Identifier: Apache-2.0 */
/* Packs panels from a source whose depth is contiguous, with 8 × 8 transposes in AVX registers. For
 * files that are compiled with AVX2 or AVX-512. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_TRANSPOSE_X86_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_TRANSPOSE_X86_H

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/simd/unrolled.h"

#include <immintrin.h>
#include <string.h>

/* Lane i of r[k] = src[i * stride + k] for k, i < 8. Lanes from @lanes on are zero. */
static inline __attribute__((always_inline)) void
transpose_8x8(__m256 *r, const char *src, int64_t stride, int64_t lanes)
{
    __m256 s[8];
    UNROLLED
    for (int i = 0; i < 8; i++) {
        const void *row = src + 4 * i * stride;
        r[i] = i < lanes ? _mm256_loadu_ps((const float *)row) : _mm256_setzero_ps();
    }
    UNROLLED
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLLED
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
    UNROLLED
    for (int i = 0; i < 4; i++) {
        __m256 low = r[i];
        r[i] = _mm256_permute2f128_ps(low, r[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(low, r[i + 4], 0x31);
    }
}

/* Packs eight steps of depth of a panel whose pitch is a multiple of 8. */
static inline void
transpose_even(float *dst, const KilnGemmTranspose *t, const char *src)
{
    for (int64_t i = 0; i < t->pitch; i += 8) {
        __m256 r[8];
        transpose_8x8(r, src + 4 * i * t->stride, t->stride, t->lanes - i);
        UNROLLED
        for (int k = 0; k < 8; k++)
            _mm256_storeu_ps(dst + k * t->pitch + i, r[k]);
    }
}

/* The same for any pitch up to 16. A store may reach into the next steps, which overwrite it. It
   must not reach over the end of the eight steps. */
static inline void
transpose_odd(float *dst, const KilnGemmTranspose *t, const char *src)
{
    __m256 low[8], high[8];
    transpose_8x8(low, src, t->stride, t->lanes);
    bool two = t->pitch > 8;
    if (two)
        transpose_8x8(high, src + 32 * t->stride, t->stride, t->lanes - 8);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int32_t pitch = (int32_t)t->pitch;
    __m256i low_mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(pitch), lanes);
    __m256i high_mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(pitch - 8), lanes);
    UNROLLED
    for (int k = 0; k < 8; k++, dst += pitch) {
        if ((8 - k) * pitch < (two ? 16 : 8)) {
            _mm256_maskstore_ps(dst, low_mask, low[k]);
            if (two)
                _mm256_maskstore_ps(dst + 8, high_mask, high[k]);
            continue;
        }
        _mm256_storeu_ps(dst, low[k]);
        if (two)
            _mm256_storeu_ps(dst + 8, high[k]);
    }
}

static inline void
transpose_some(float *dst, int64_t pitch, const char *src, int64_t stride, int64_t lanes)
{
    for (int64_t i = 0; i < lanes; i++)
        memcpy(dst + i, src + 4 * i * stride, 4);
    for (int64_t i = lanes; i < pitch; i++)
        dst[i] = 0.0f;
}

static void
kiln_gemm_transpose_x86(const KilnGemmTranspose *t)
{
    const char *src = t->src;
    int64_t k = 0;
    for (; k + 8 <= t->depth; k += 8) {
        if (t->pitch % 8 == 0)
            transpose_even(t->dst + k * t->pitch, t, src + 4 * k);
        else
            transpose_odd(t->dst + k * t->pitch, t, src + 4 * k);
    }
    for (; k < t->depth; k++)
        transpose_some(t->dst + k * t->pitch, t->pitch, src + 4 * k, t->stride, t->lanes);
}

#endif
