/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Panels from a source whose depth is contiguous: 8 × 8 transposes in AVX registers, for the files
 * that are compiled with AVX2 or AVX-512.
 */
#pragma once

#include "backends/cpu/gemm_kernel.h"

#include <immintrin.h>
#include <string.h>

/* dst[k * pitch + i] = src[i * stride + k] for k, i < 8. */
static inline void
transpose_8x8(float *dst, int64_t pitch, const char *src, int64_t stride)
{
    __m256 r[8], s[8];
    for (int i = 0; i < 8; i++)
        r[i] = _mm256_loadu_ps((const float *)(const void *)(src + 4 * i * stride));
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(dst + i * pitch, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(dst + (i + 4) * pitch, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
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
        float *dst = t->dst + k * t->pitch;
        int64_t i = 0;
        for (; i + 8 <= t->lanes; i += 8)
            transpose_8x8(dst + i, t->pitch, src + 4 * (i * t->stride + k), t->stride);
        if (i < t->pitch) {
            for (int64_t r = 0; r < 8; r++)
                transpose_some(dst + r * t->pitch + i, t->pitch - i,
                               src + 4 * (i * t->stride + k + r), t->stride, t->lanes - i);
        }
    }
    for (; k < t->depth; k++)
        transpose_some(t->dst + k * t->pitch, t->pitch, src + 4 * k, t->stride, t->lanes);
}
