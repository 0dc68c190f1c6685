/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of low.h in plain C without branches, so that the compiler can vectorise them. Each
 * instruction set has a file that includes this once and defines LOW, the name of the table. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_LOW_LOOPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_LOW_LOOPS_H

#include "backends/cpu/elementwise/low.h"
#include "backends/cpu/elementwise/quantized_steps.h"
#include "backends/cpu/simd/reinterpret.h"
#include "graph/base/number.h"
#include "graph/kiln-types.h"

enum {
    F32_MANTISSA = 23,
    F32_BIAS = 127,
    F32_INFINITY = 0x7f800000,
    F32_NAN = 0x7fc00000,
};

REINTERPRET(float_of, float, uint32_t)
REINTERPRET(bits_of, uint32_t, float)

/* --- floats --- */

/* How the codes of a type are read, as in graph/base/low_bits.c. Every use is a constant. */
typedef struct {
    int mantissa, bias;
    uint32_t sign, largest, over, nan; /* codes; 0: there is none */
    bool one_zero;                     /* the code of -0 is the only NaN */
} Format;

static const Format e4m3fn = { 3, 7, 0x80, 0x7e, 0x7f, 0x7f, false };
static const Format e4m3fnuz = { 3, 8, 0x80, 0x7f, 0x80, 0x80, true };
static const Format e5m2 = { 2, 15, 0x80, 0x7b, 0x7c, 0x7e, false };
static const Format e5m2fnuz = { 2, 16, 0x80, 0x7f, 0x80, 0x80, true };
static const Format e2m3 = { 3, 1, 0x20, 0x1f, 0, 0, false };
static const Format e3m2 = { 2, 3, 0x20, 0x1f, 0, 0, false };
static const Format e2m1 = { 1, 1, 0x08, 0x07, 0, 0, false };

/* A number below the least normal one has its units as an integer. */
static inline float
decode(uint32_t code, const Format *f)
{
    const uint32_t magnitude = code & (f->sign - 1), hidden = 1U << f->mantissa;
    const float unit = float_of((uint32_t)(F32_BIAS + 1 - f->bias - f->mantissa) << F32_MANTISSA);
    const float small = (float)(int32_t)magnitude * unit;
    const uint32_t normal = (magnitude << (F32_MANTISSA - f->mantissa)) +
                            ((uint32_t)(F32_BIAS - f->bias) << F32_MANTISSA);
    const uint32_t number = magnitude < hidden ? bits_of(small) : normal;
    const uint32_t beyond =
        magnitude == f->over && f->over != f->nan ? (uint32_t)F32_INFINITY : (uint32_t)F32_NAN;
    const uint32_t found = magnitude > f->largest ? beyond : number;
    const uint32_t sign = code & f->sign ? 0x80000000U : 0;
    return float_of(f->one_zero && (code & 0xff) == f->nan ? (uint32_t)F32_NAN : found | sign);
}

/* The bits are rounded where the mantissa of the type ends, half to even. Below the least normal
 * number, a sum whose last place is the type's unit rounds. */
static inline uint8_t
encode(float x, const Format *f, bool saturate)
{
    const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffff;
    const int shift = F32_MANTISSA - f->mantissa;
    const uint32_t least = (uint32_t)(F32_BIAS + 1 - f->bias) << F32_MANTISSA;
    const uint32_t rounded =
        (magnitude + ((1U << (shift - 1)) - 1) + (magnitude >> shift & 1)) >> shift;
    const uint32_t normal = rounded - ((uint32_t)(F32_BIAS - f->bias) << f->mantissa);
    const float scaled = float_of(magnitude < least ? magnitude : 0) *
                         float_of((uint32_t)(F32_BIAS - 1 + f->bias + f->mantissa) << F32_MANTISSA);
    const uint32_t small = bits_of(scaled + 0x1p23f) & 0xff;
    const uint32_t code = magnitude < least ? small : normal;
    const uint32_t sign = bits & 0x80000000U ? f->sign : 0;
    const uint32_t over = saturate || !f->over ? f->largest : f->over;
    const uint32_t signless = code > f->largest ? over : code;
    const uint32_t number = f->one_zero && code == 0 ? 0 : signless | sign;
    const uint32_t nan = f->nan ? f->nan | sign : 0;
    return (uint8_t)(magnitude > F32_INFINITY ? nan : number);
}

#define LOW_FLOAT(id, format)                                                                      \
    static void id##_to_f32(void *out, const void *in, int64_t n)                                  \
    {                                                                                              \
        float *to = out;                                                                           \
        const uint8_t *x = in;                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = decode(x[i], &(format));                                                       \
    }                                                                                              \
    static void f32_to_##id(uint8_t *out, const float *x, int64_t n, bool saturate,                \
                            KilnRoundMode mode)                                                    \
    {                                                                                              \
        (void)mode;                                                                                \
        for (int64_t i = 0; saturate && i < n; i++)                                                \
            out[i] = encode(x[i], &(format), true);                                                \
        for (int64_t i = 0; !saturate && i < n; i++)                                               \
            out[i] = encode(x[i], &(format), false);                                               \
    }
LOW_FLOAT(f8e4m3fn, e4m3fn)
LOW_FLOAT(f8e4m3fnuz, e4m3fnuz)
LOW_FLOAT(f8e5m2, e5m2)
LOW_FLOAT(f8e5m2fnuz, e5m2fnuz)
LOW_FLOAT(f6e2m3, e2m3)
LOW_FLOAT(f6e3m2, e3m2)
LOW_FLOAT(f4e2m1, e2m1)

/* The bits of an exponent. Its least number is half of the least normal f32. */
static void
f8e8m0_to_f32(void *out, const void *in, int64_t n)
{
    float *to = out;
    const uint8_t *x = in;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t number = x[i] ? (uint32_t)x[i] << F32_MANTISSA : 0x400000U;
        to[i] = float_of(x[i] == 255 ? (uint32_t)F32_NAN : number);
    }
}

/* Scales are few: no loop of its own. */
static void
f32_to_f8e8m0(uint8_t *out, const float *x, int64_t n, bool saturate, KilnRoundMode mode)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = kiln_low_float_from_f64(KILN_DTYPE_f8e8m0, (double)x[i], saturate, mode);
}

/* --- integers --- */

#define WHOLE(id, T)                                                                               \
    static void id##_to_f32(void *out, const void *in, int64_t n)                                  \
    {                                                                                              \
        float *to = out;                                                                           \
        const T *x = in;                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (float)x[i];                                                                   \
    }
WHOLE(i8, int8_t)
WHOLE(u8, uint8_t)
WHOLE(i16, int16_t)
WHOLE(u16, uint16_t)
WHOLE(i32, int32_t)

/* Beyond 2^31 a float is a multiple of 2^8. From 2^63 on it counts as 2^63 - 1, as in a cast to 64
 * bits. */
static inline uint8_t
low_bits(float x, int mask)
{
    const float magnitude = float_of(bits_of(x) & 0x7fffffff);
    const int32_t inside = (int32_t)(magnitude < 0x1p31f ? x : 0);
    return (uint8_t)((x >= 0x1p63f ? -1 : inside) & mask);
}

#define FEW_BITS(id, mask, sign)                                                                   \
    static void id##_to_f32(void *out, const void *in, int64_t n)                                  \
    {                                                                                              \
        float *to = out;                                                                           \
        const uint8_t *x = in;                                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (float)(((x[i] & (mask)) ^ (sign)) - (sign));                                  \
    }                                                                                              \
    static void f32_to_##id(uint8_t *out, const float *x, int64_t n, bool saturate,                \
                            KilnRoundMode mode)                                                    \
    {                                                                                              \
        (void)saturate;                                                                            \
        (void)mode;                                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = low_bits(x[i], mask);                                                         \
    }
FEW_BITS(i4, 15, 8)
FEW_BITS(u4, 15, 0)
FEW_BITS(i2, 3, 2)
FEW_BITS(u2, 3, 0)

/* --- quantization --- */

/* The sum with 1.5 × 2^23 rounds to an integer. All of them are exact in f32. */
static inline int32_t
stored(float steps, float zero, float low, float high)
{
    const float magic = 0x1.8p23f, number = steps != steps ? 0 : steps;
    const float rounded = (within(number, low - zero, high - zero) + magic) - magic;
    return (int32_t)(rounded + zero);
}

#define STEPS(id, T, low, high, mask)                                                              \
    static void id##_of_steps(void *out, const float *steps, const float *zero, int64_t n)         \
    {                                                                                              \
        T *to = out;                                                                               \
        for (int64_t i = 0; zero && i < n; i++)                                                    \
            to[i] = (T)(stored(steps[i], zero[i], low, high) & (mask));                            \
        for (int64_t i = 0; !zero && i < n; i++)                                                   \
            to[i] = (T)(stored(steps[i], 0, low, high) & (mask));                                  \
    }
STEPS(i16, int16_t, INT16_MIN, INT16_MAX, -1)
STEPS(u16, uint16_t, 0, UINT16_MAX, -1)
STEPS(i8, int8_t, INT8_MIN, INT8_MAX, -1)
STEPS(u8, uint8_t, 0, UINT8_MAX, -1)
STEPS(i4, uint8_t, -8, 7, 15)
STEPS(u4, uint8_t, 0, 15, 15)
STEPS(i2, uint8_t, -2, 1, 3)
STEPS(u2, uint8_t, 0, 3, 3)

static void
divide(float *out, const float *x, const float *scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] / scale[i];
}

static void
multiply(float *out, const float *x, const float *zero, const float *scale, int64_t n)
{
    for (int64_t i = 0; zero && i < n; i++)
        out[i] = (x[i] - zero[i]) * scale[i];
    for (int64_t i = 0; !zero && i < n; i++)
        out[i] = x[i] * scale[i];
}

static void
unpack4(uint8_t *out, const uint8_t *packed, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++) {
        out[2 * i] = packed[i] & 15;
        out[2 * i + 1] = packed[i] >> 4;
    }
    if (n % 2)
        out[n - 1] = packed[n / 2] & 15;
}

/* --- the table --- */

#define TO_F32(id) [KILN_DTYPE_##id] = id##_to_f32
#define FROM_F32(id) [KILN_DTYPE_##id] = f32_to_##id
#define OF_STEPS(id) [KILN_DTYPE_##id] = id##_of_steps

const KilnCpuLowRows LOW = {
    .to_f32 = { TO_F32(f8e4m3fn), TO_F32(f8e4m3fnuz), TO_F32(f8e5m2), TO_F32(f8e5m2fnuz),
                TO_F32(f8e8m0), TO_F32(f6e2m3), TO_F32(f6e3m2), TO_F32(f4e2m1), TO_F32(i4),
                TO_F32(u4), TO_F32(i2), TO_F32(u2), TO_F32(i8), TO_F32(u8), TO_F32(i16),
                TO_F32(u16), TO_F32(i32) },
    .from_f32 = { FROM_F32(f8e4m3fn), FROM_F32(f8e4m3fnuz), FROM_F32(f8e5m2), FROM_F32(f8e5m2fnuz),
                  FROM_F32(f8e8m0), FROM_F32(f6e2m3), FROM_F32(f6e3m2), FROM_F32(f4e2m1),
                  FROM_F32(i4), FROM_F32(u4), FROM_F32(i2), FROM_F32(u2) },
    .steps = { OF_STEPS(i16), OF_STEPS(u16), OF_STEPS(i8), OF_STEPS(u8), OF_STEPS(i4), OF_STEPS(u4),
               OF_STEPS(i2), OF_STEPS(u2) },
    .divide = divide,
    .multiply = multiply,
    .unpack4 = unpack4,
};

#endif
