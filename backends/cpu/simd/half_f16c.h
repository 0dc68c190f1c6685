/* SPDX-License-Identifier: Apache-2.0 */
/* Converts f32 to f16, rounded half to even, and back. For files that are compiled for processors
 * with F16C. It converts eight at a time. The rest is copied to a buffer of eight. */
#ifndef KILN_BACKENDS_CPU_SIMD_HALF_F16C_H
#define KILN_BACKENDS_CPU_SIMD_HALF_F16C_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

static inline void
narrow(uint16_t *out, const float *x)
{
    __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)out, halves);
}

static inline void
widen(float *out, const uint16_t *x)
{
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)x)));
}

static void
f32_to_f16(void *to, const void *from, int64_t n)
{
    uint16_t *out = to;
    const float *x = from;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        narrow(out + i, x + i);
    float wide[8] = { 0 };
    uint16_t halves[8];
    memcpy(wide, x + i, (size_t)(n - i) * sizeof *x);
    narrow(halves, wide);
    memcpy(out + i, halves, (size_t)(n - i) * sizeof *out);
}

static void
f16_to_f32(void *to, const void *from, int64_t n)
{
    float *out = to;
    const uint16_t *x = from;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        widen(out + i, x + i);
    uint16_t halves[8] = { 0 };
    float wide[8];
    memcpy(halves, x + i, (size_t)(n - i) * sizeof *x);
    widen(wide, halves);
    memcpy(out + i, wide, (size_t)(n - i) * sizeof *out);
}

#endif
