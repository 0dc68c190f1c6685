/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of f64 in plain C without branches and calls, so that the compiler makes vectors of
 * loops over them: about 40 operations each. Sums and products alone, never fused: every
 * instruction set has the same bits. Errors are at most 1 unit in the last place for exp, log, sin
 * and cos, 1.5 for tanh, and 2 for sigmoid, denormal results included; unit.cpu_numbers measures
 * them against long double. The polynomials are interpolations of this project. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_REAL_MATH_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_REAL_MATH_H

#include "backends/cpu/elementwise/wide_functions.h"

/* --- exponentials --- */

/* e^x = (1 + rest) 2^k, with k in the low bits of a sum. */
typedef struct {
    double rest, k;
} RealPower;

/* The difference of the first part of k ln 2 is exact, because that has 32 bits. The second part
 * joins the sum last. */
WIDE_FUNCTION RealPower
real_power(double x)
{
    const double k = (x * 0x1.71547652b82fep0 + wide_magic) - wide_magic;
    const double high = x - k * 0x1.62e42feep-1, low = k * 0x1.a39ef35793c76p-33, r = high - low;
    double tail = 0x1.af4ddfbb33a59p-26 + r * 0x1.1f72fdb6c6442p-29;
    tail = 0x1.71de02364614ap-19 + r * (0x1.27e4db6718a69p-22 + r * tail);
    tail = 0x1.a01a01abe683ap-13 + r * (0x1.a01a01a6d7b19p-16 + r * tail);
    tail = 0x1.11111111100dep-7 + r * (0x1.6c16c16c162d6p-10 + r * tail);
    tail = 0x1.5555555555557p-3 + r * (0x1.5555555555556p-5 + r * tail);
    return (RealPower){ high + (r * r * (0.5 + r * tail) - low), k };
}

/* 2^k for whole k from -1022 to 1023. */
WIDE_FUNCTION double
real_power_of_two(double k)
{
    return wide_of((wide_bits(k + wide_magic) << 52) + (UINT64_C(1023) << 52));
}

/* Two powers of two, because one may lie beyond the normal numbers. */
WIDE_FUNCTION double
real_exp(double x)
{
    const double least = x > -746 ? x : -746, within = least < 710 ? least : 710;
    const RealPower power = real_power(within);
    const double half = (power.k * 0.5 + wide_magic) - wide_magic;
    const double y = (1 + power.rest) * real_power_of_two(half) * real_power_of_two(power.k - half);
    return x != x ? x : y;
}

/* A polynomial around zero. Elsewhere 1 - 2 / (e^2|x| + 1), which is 1 from |x| = 19.1 on. */
WIDE_FUNCTION double
real_tanh(double x)
{
    const double size = __builtin_fabs(x), t = size < 20 ? size : 20, s = t * t;
    double tail = 0x1.64f707cc1dd7ap-14 + s * -0x1.5996208755357p-16;
    tail = 0x1.34c57de460ce3p-11 + s * (-0x1.ec0e954f20831p-13 + s * tail);
    tail = 0x1.d6d338edc5a55p-9 + s * (-0x1.7d97cb7a8fd9cp-10 + s * tail);
    tail = 0x1.664f48770be75p-6 + s * (-0x1.226e32eebbb04p-7 + s * tail);
    tail = 0x1.1111111111032p-3 + s * (-0x1.ba1ba1b9feb3cp-5 + s * tail);
    const double near = t + t * s * (-0x1.5555555555555p-2 + s * tail);
    const RealPower power = real_power(t + t);
    const double e = (1 + power.rest) * real_power_of_two(power.k);
    const double y = t < 0.55 ? near : 1 - 2 / (e + 1);
    return x != x ? x : wide_signed(y, x);
}

/* 1 / (1 + e) or e / (1 + e) with e = e^-|x|, so that nothing overflows. The last step corrects the
 * rounding error of 1 + e. */
WIDE_FUNCTION double
real_sigmoid(double x)
{
    const double e = real_exp(-__builtin_fabs(x)), sum = 1 + e, lost = e - (sum - 1);
    const double y = (x < 0 ? e : 1) / sum, inverse = x < 0 ? 1 - y : y;
    return y - y * inverse * lost;
}

/* --- logarithm --- */

/* m in √½ … √2 and f = m - 1; then log m = f - (f²/2 - s (f²/2 + r)) for s = f / (2 + f) and
 * r = 2 (artanh(s) / s - 1), a polynomial in s². */
WIDE_FUNCTION double
real_log(double x)
{
    const uint64_t root_half = UINT64_C(0x3fe6a09e) << 32, one = UINT64_C(0x3ff) << 52;
    const bool denormal = x < 0x1p-1022;
    const uint64_t bits = wide_bits(denormal ? x * 0x1p54 : x) + (one - root_half);
    const double exponent = wide_of(bits >> 52 | UINT64_C(0x433) << 52) - 0x1p52;
    const double k = exponent - (denormal ? 1023 + 54 : 1023);
    const double f = wide_of((bits & (UINT64_MAX >> 12)) + root_half) - 1;
    const double s = f / (2 + f), z = s * s, square = 0.5 * f * f;
    double tail = 0x1.0fbe84f5caccap-3 + z * 0x1.0c044ccf380aap-3;
    tail = 0x1.745cf90196560p-3 + z * (0x1.3b1c35fbecd93p-3 + z * tail);
    tail = 0x1.2492492476c8bp-2 + z * (0x1.c71c720160332p-3 + z * tail);
    tail = z * (0x1.5555555555555p-1 + z * (0x1.9999999999a38p-2 + z * tail));
    const double low = s * (square + tail) + k * 0x1.a39ef35793c76p-33;
    const double y = k * 0x1.62e42feep-1 - ((square - low) - f);
    const double special = x < 0 ? __builtin_nan("") : x == 0 ? -__builtin_inf() : x;
    return x > 0 && x < __builtin_inf() ? y : special;
}

/* --- sine and cosine --- */

/* Up to here the quarter turns fit in the 20 bits that the first two parts of π/2 leave. */
static const double real_most_angle = 1e6;

/* high + low in -π/4 … π/4. */
typedef struct {
    double high, low;
    uint64_t turns; /* quarters, in the low bits */
} RealAngle;

/* The products with the first two parts are exact, and so is the first difference. */
WIDE_FUNCTION RealAngle
real_angle(double x)
{
    const double shifted = x * 0x1.45f306dc9c883p-1 + wide_magic, turns = shifted - wide_magic;
    const double first = x - turns * 0x1.921fb544p0, second = turns * 0x1.0b4611a6p-34;
    const double rest = first - second, part = rest - first;
    const double lost = (first - (rest - part)) - (second + part);
    const double third = turns * 0x1.3198a2e037073p-69, high = rest - third;
    return (RealAngle){ high, ((rest - high) - third) + lost, wide_bits(shifted) };
}

WIDE_FUNCTION double
real_turned(const RealAngle *angle, uint64_t turns)
{
    const double r = angle->high, s = r * r;
    double odd = -0x1.ae6008b321baep-26 + s * 0x1.5e0a44fa8765ap-33;
    odd = -0x1.a01a019e81f4bp-13 + s * (0x1.71de379452125p-19 + s * odd);
    odd = -0x1.5555555555555p-3 + s * (0x1.1111111110babp-7 + s * odd);
    const double sine = r + (r * s * odd + angle->low * (1 - 0.5 * s));
    double even = 0x1.1eeb67c12a0b4p-29 + s * -0x1.907cce35dd891p-37;
    even = 0x1.a01a019f4dd4cp-16 + s * (-0x1.27e4fa16bdc76p-22 + s * even);
    even = s * (0x1.5555555555555p-5 + s * (-0x1.6c16c16c16963p-10 + s * even));
    const double half = 0.5 * s, whole = 1 - half;
    const double cosine = whole + (((1 - whole) - half) + (s * even - r * angle->low));
    const double chosen = turns & 1 ? cosine : sine;
    return wide_of(wide_bits(chosen) ^ (turns & 2) << 62);
}

WIDE_FUNCTION double
real_sin(double x)
{
    const RealAngle angle = real_angle(x);
    return x == 0 ? x : real_turned(&angle, angle.turns);
}

WIDE_FUNCTION double
real_cos(double x)
{
    const RealAngle angle = real_angle(x);
    return real_turned(&angle, angle.turns + 1);
}

#endif
