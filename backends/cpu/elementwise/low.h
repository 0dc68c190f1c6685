/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows of numbers of 8 bits and fewer, from f32 and to f32, per instruction set. Every
 * instruction set has the bits of the ref backend. An element takes a byte. Rows do not overlap. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_LOW_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_LOW_H

#include "backends/cpu/isa.h"
#include "graph/base/number.h"
#include "graph/kiln-types.h"

/* Exact, for integers of up to 32 bits, too, which round half to even. */
typedef void (*KilnCpuToF32Row)(void *out, const void *x, int64_t n);

/* A cast: floats round as @saturate and @mode say, integers keep the low bits of what is truncated.
 */
typedef void (*KilnCpuLowRow)(uint8_t *out, const float *x, int64_t n, bool saturate,
                              KilnRoundMode mode);

/* Steps of a quantization to integers: rounds half to even, adds @zero, and saturates. A NaN counts
 * as 0. @zero is NULL or has @n integers. */
typedef void (*KilnCpuStepsRow)(void *out, const float *steps, const float *zero, int64_t n);

typedef struct {
    KilnCpuToF32Row to_f32[KILN_N_DTYPES]; /* of low floats and integers; NULL for other types */
    KilnCpuLowRow from_f32[KILN_N_DTYPES]; /* of low floats, and integers of fewer than 8 bits */
    KilnCpuStepsRow steps[KILN_N_DTYPES];  /* of integers of up to 16 bits */
    /* out[i] = x[i] / scale[i] */
    void (*divide)(float *out, const float *x, const float *scale, int64_t n);
    /* out[i] = (x[i] - zero[i]) * scale[i]; a zero of NULL takes no part */
    void (*multiply)(float *out, const float *x, const float *zero, const float *scale, int64_t n);
    /* Elements of 4 bits, the first of them in the low bits of a byte. */
    void (*unpack4)(uint8_t *out, const uint8_t *packed, int64_t n);
} KilnCpuLowRows;

extern const KilnCpuLowRows kiln_cpu_low_portable;
#if defined(__x86_64__)
extern const KilnCpuLowRows kiln_cpu_low_avx2;
extern const KilnCpuLowRows kiln_cpu_low_avx512;
#endif

/** Returns the loops of @isa. AUTO is the best of this machine. */
static inline const KilnCpuLowRows *
kiln_cpu_low(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, &kiln_cpu_low);
}

#endif
