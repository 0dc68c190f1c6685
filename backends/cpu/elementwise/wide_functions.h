/* SPDX-License-Identifier: Apache-2.0 */
/* Trigonometric and hyperbolic functions of f32, computed in f64 and rounded once. They are plain C
 * without branches and calls, so that the compiler can vectorise loops over them. Sums and products
 * alone: every instruction set has the same bits. Polynomials are the series of Taylor, cut where
 * the rest is below 2^-33 of the result, if nothing else is said. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_WIDE_FUNCTIONS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_WIDE_FUNCTIONS_H

#include "backends/cpu/simd/reinterpret.h"

#include <stdbool.h>
#include <stdint.h>

/* A call that stays would keep a loop from becoming vectors. */
#define WIDE_FUNCTION static inline __attribute__((always_inline))

REINTERPRET(wide_bits, uint64_t, double)
REINTERPRET(wide_of, double, uint64_t)

#define WIDE_SIGN (UINT64_C(1) << 63)

/* The magnitude of @x with the sign of @from. */
WIDE_FUNCTION double
wide_signed(double x, double from)
{
    return wide_of((wide_bits(x) & ~WIDE_SIGN) | (wide_bits(from) & WIDE_SIGN));
}

/* --- sine and cosine --- */

/* A sum with it has the nearest integer in its low bits. */
static const double wide_magic = 0x1.8p52;

/* Up to here the quarter turns fit in the 20 bits that the parts of pi / 2 leave. */
static const float wide_most_turns = 1e6f;

typedef struct {
    double rest;    /* in -pi/4 … pi/4 */
    uint64_t turns; /* quarters, in the low bits */
} WideAngle;

/* pi / 2 in three parts, of which the first two have 33 bits. */
WIDE_FUNCTION WideAngle
wide_angle(double x)
{
    const double shifted = x * 0x1.45f306dc9c883p-1 + wide_magic, turns = shifted - wide_magic;
    const double first = x - turns * 0x1.921fb544p0, second = first - turns * 0x1.0b4611a6p-34;
    return (WideAngle){ second - turns * 0x1.3198a2e037073p-69, wide_bits(shifted) };
}

WIDE_FUNCTION double
wide_sine_of_rest(double r)
{
    const double s = r * r;
    const double tail =
        -1 / 6. + s * (1 / 120. + s * (-1 / 5040. + s * (1 / 362880. + s * (-1 / 39916800.))));
    return r + r * s * tail;
}

WIDE_FUNCTION double
wide_cosine_of_rest(double r)
{
    const double s = r * r;
    const double tail =
        1 / 24. + s * (-1 / 720. + s * (1 / 40320. + s * (-1 / 3628800. + s * (1 / 479001600.))));
    return 1 - s * 0.5 + s * s * tail;
}

WIDE_FUNCTION double
wide_turned(const WideAngle *angle, uint64_t turns)
{
    const double sine = wide_sine_of_rest(angle->rest), cosine = wide_cosine_of_rest(angle->rest);
    const double chosen = turns & 1 ? cosine : sine;
    return wide_of(wide_bits(chosen) ^ (turns & 2) << 62);
}

WIDE_FUNCTION double
wide_sin(double x)
{
    const WideAngle angle = wide_angle(x);
    return wide_turned(&angle, angle.turns);
}

WIDE_FUNCTION double
wide_cos(double x)
{
    const WideAngle angle = wide_angle(x);
    return wide_turned(&angle, angle.turns + 1);
}

WIDE_FUNCTION double
wide_tan(double x)
{
    const WideAngle angle = wide_angle(x);
    const double sine = wide_sine_of_rest(angle.rest), cosine = wide_cosine_of_rest(angle.rest);
    const bool odd = angle.turns & 1;
    return (odd ? -cosine : sine) / (odd ? sine : cosine);
}

/* --- exponential and logarithm --- */

/* Infinity and 0 of an f32 lie within these bounds. */
WIDE_FUNCTION double
wide_exp(double x)
{
    const double least = x > -200 ? x : -200, within = least < 200 ? least : 200;
    const double shifted = within * 0x1.71547652b82fep0 + wide_magic, k = shifted - wide_magic;
    const double r = within - k * 0x1.62e42fefa38p-1 - k * 0x1.ef35793c7673p-45;
    const double tail =
        1 / 2. +
        r * (1 / 6. +
             r * (1 / 24. +
                  r * (1 / 120. +
                       r * (1 / 720. + r * (1 / 5040. + r * (1 / 40320. + r * (1 / 362880.)))))));
    const double power = wide_of((wide_bits(shifted) << 52) + (UINT64_C(1023) << 52));
    return x != x ? x : (1 + r + r * r * tail) * power;
}

/* Of normal numbers: m in root 1/2 … root 2, and 2 artanh((m - 1) / (m + 1)). */
WIDE_FUNCTION double
wide_log(double x)
{
    const uint64_t bits = wide_bits(x);
    const double half = wide_of((bits & ~(UINT64_C(0xfff) << 52)) | UINT64_C(0x3ff) << 52);
    const bool above = half > 0x1.6a09e667f3bcdp0;
    const double m = above ? half * 0.5 : half;
    const double exponent = wide_of(bits >> 52 | UINT64_C(0x433) << 52) - 0x1p52 - 1023;
    const double f = (m - 1) / (m + 1), s = f * f;
    const double tail =
        1 / 3. +
        s * (1 / 5. + s * (1 / 7. + s * (1 / 9. + s * (1 / 11. + s * (1 / 13. + s * (1 / 15.))))));
    const double log =
        (above ? exponent + 1 : exponent) * 0x1.62e42fefa39efp-1 + 2 * (f + f * s * tail);
    const double special = x < 0 ? __builtin_nan("") : x == 0 ? -__builtin_inf() : x;
    return x > 0 && x < __builtin_inf() ? log : special;
}

/* --- hyperbolic functions: near 0 their series, which keep all digits --- */

WIDE_FUNCTION double
wide_cosh(double x)
{
    const double e = wide_exp(__builtin_fabs(x));
    return 0.5 * e + 0.5 / e;
}

WIDE_FUNCTION double
wide_sinh(double x)
{
    const double size = __builtin_fabs(x), e = wide_exp(size), s = x * x;
    const double near =
        size + size * s * (1 / 6. + s * (1 / 120. + s * (1 / 5040. + s * (1 / 362880.))));
    return wide_signed(size < 0.25 ? near : 0.5 * e - 0.5 / e, x);
}

/* The root of t (t + 2) keeps what x and 1 differ in. */
WIDE_FUNCTION double
wide_acosh(double x)
{
    const double t = x - 1;
    const double log = wide_log(x + __builtin_sqrt(t * (t + 2)));
    return x < 1 ? __builtin_nan("") : log;
}

WIDE_FUNCTION double
wide_asinh(double x)
{
    const double size = __builtin_fabs(x), s = x * x;
    const double near =
        size +
        size * s *
            (-1 / 6. + s * (3 / 40. + s * (-15 / 336. + s * (105 / 3456. + s * (-945 / 42240.)))));
    return wide_signed(size < 0.1 ? near : wide_log(size + __builtin_sqrt(s + 1)), x);
}

WIDE_FUNCTION double
wide_atanh(double x)
{
    const double size = __builtin_fabs(x), s = x * x;
    const double near =
        size + size * s * (1 / 3. + s * (1 / 5. + s * (1 / 7. + s * (1 / 9. + s * (1 / 11.)))));
    const double far = 0.5 * wide_log((1 + size) / (1 - size));
    const double inside = wide_signed(size < 0.1 ? near : far, x);
    return size > 1 ? __builtin_nan("") : inside;
}

#endif
