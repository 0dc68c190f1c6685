/* SPDX-License-Identifier: Apache-2.0 */
/* acos, asin and atan of one vector of f32, in the vocabulary of simd_ops_*.h: about 60 operations
 * on 16 lanes of AVX-512, half of what f64 takes. An angle is the sum of two floats, of which
 * the second has what rounding lost, until the last step rounds it once. Errors are at most 0.51
 * units in the last place. The polynomials are weighted fits of this project. NaN gives NaN. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_ARC_FUNCTIONS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_ARC_FUNCTIONS_H

typedef struct {
    V high, low;
} Pair;

/* first + z (second + z rest). */
static inline Pair
arc_factor(Pair z, Pair first, V second, V rest)
{
    const V next = V_MUL(z.high, second), factor = V_ADD(first.high, next);
    V low = V_FUSED(z.low, second, V_FUSED(z.high, second, V_NEG(next)));
    low = V_ADD(V_FUSED(V_MUL(z.high, rest), z.high, first.low), low);
    return (Pair){ factor, V_ADD(V_SUB(next, V_SUB(factor, first.high)), low) };
}

/* t + t z factor for z = t². */
static inline Pair
arc_series(Pair t, Pair z, Pair factor)
{
    const V share = V_MUL(z.high, factor.high);
    V lost = V_FUSED(z.low, factor.high, V_FUSED(z.high, factor.high, V_NEG(share)));
    lost = V_FUSED(z.high, factor.low, lost);
    const V more = V_MUL(t.high, share), sum = V_ADD(t.high, more);
    V low = V_FUSED(t.low, share, V_FUSED(t.high, share, V_NEG(more)));
    low = V_ADD(V_FUSED(t.high, lost, low), t.low);
    return (Pair){ sum, V_ADD(V_SUB(more, V_SUB(sum, t.high)), low) };
}

/* @quarters π/2 + @by @angle. The first part is 0 or larger than the second. */
static inline V
arc_sum(V quarters, V by, Pair angle)
{
    const V whole = V_MUL(quarters, V_SET1(0x1.921fb6p0f)), part = V_MUL(by, angle.high);
    const V sum = V_ADD(whole, part), lost = V_SUB(part, V_SUB(sum, whole));
    const V low = V_FUSED(quarters, V_SET1(-0x1.777a5cp-25f), V_MUL(by, angle.low));
    return V_ADD(sum, V_ADD(lost, low));
}

/* The angle whose sine is @size, up to 1/2. Beyond, where @high is set, half of the angle from
 * there to 1: its sine is √((1 - size) / 2), and the difference is exact. */
static inline Pair
arc_of_sine(V size, B high)
{
    const V half = V_SET1(0.5f), zero = V_SET1(0.0f), square = V_MUL(size, size);
    const V apart = V_MUL(half, V_SUB(V_SET1(1.0f), size)), root = V_SQRT(apart);
    const V slope = V_DIV(half, V_MAX(V_SET1(0x1p-60f), root));
    const V missing = V_MUL(V_FUSED_FROM(root, root, apart), slope);
    const Pair t = { V_SELECT(high, root, size), V_SELECT(high, missing, zero) };
    const Pair z = { V_SELECT(high, apart, square),
                     V_SELECT(high, zero, V_FUSED(size, size, V_NEG(square))) };
    V rest = V_SET1(0x1.114f4ap-5f);
    rest = V_FUSED(rest, z.high, V_SET1(0x1.1c6ad4p-7f));
    rest = V_FUSED(rest, z.high, V_SET1(0x1.8c3408p-6f));
    rest = V_FUSED(rest, z.high, V_SET1(0x1.ee9d12p-6f));
    rest = V_FUSED(rest, z.high, V_SET1(0x1.6dcbc4p-5f));
    const V second = V_SET1(0x1.3333p-4f);
    const Pair first = { V_SET1(0x1.555556p-3f), V_SET1(-0x1.555556p-28f) };
    return arc_series(t, z, arc_factor(z, first, second, rest));
}

static inline V
vector_asin(V x)
{
    const V size = V_ABS(x);
    const B high = V_LT(V_SET1(0.5f), size);
    const V quarters = V_SELECT(high, V_SET1(1.0f), V_SET1(0.0f));
    const V by = V_SELECT(high, V_SET1(-2.0f), V_SET1(1.0f));
    return V_COPYSIGN(arc_sum(quarters, by, arc_of_sine(size, high)), x);
}

static inline V
vector_acos(V x)
{
    const V zero = V_SET1(0.0f), one = V_SET1(1.0f), two = V_SET1(2.0f), size = V_ABS(x);
    const B high = V_LT(V_SET1(0.5f), size);
    const V far = V_SELECT(V_LT(x, zero), two, zero);
    const V by = V_COPYSIGN(V_SELECT(high, two, one), V_SELECT(high, x, V_NEG(x)));
    return arc_sum(V_SELECT(high, far, one), by, arc_of_sine(size, high));
}

/* From 1/2 on less π/4, from tan(3π/8) on less π/2: the tangent of the rest is the
 * quotient of (size - 1) and (size + 1), or of -1 and size. */
static inline V
vector_atan(V x)
{
    const V one = V_SET1(1.0f), zero = V_SET1(0.0f), half = V_SET1(0.5f);
    const V size = V_MIN(V_SET1(0x1p60f), V_ABS(x)), up = V_ADD(size, one), down = V_SUB(size, one);
    const B middle = V_LT(half, size), high = V_LT(V_SET1(0x1.3504f4p1f), size);
    V dividend = V_SELECT(middle, down, size), divisor = V_SELECT(middle, up, one);
    V quarters = V_SELECT(middle, half, zero);
    dividend = V_SELECT(high, V_SET1(-1.0f), dividend);
    divisor = V_SELECT(high, size, divisor);
    quarters = V_SELECT(high, one, quarters);
    /* What the sum lost: size is in 0.5 … 2.5, so its difference from 1 is exact,
     * and the larger term of their sum comes first. */
    const B below = V_LT(size, one);
    const V up_lost = V_ADD(V_SUB(V_SELECT(below, one, size), up), V_SELECT(below, size, one));
    const V slope = V_DIV(one, divisor), t = V_MUL(dividend, slope);
    V missing = V_FUSED_FROM(t, divisor, dividend);
    const V corrected = V_FUSED_FROM(t, up_lost, missing);
    missing = V_SELECT(middle, V_SELECT(high, missing, corrected), missing);
    const Pair quotient = { t, V_MUL(missing, slope) };
    const V square = V_MUL(t, t);
    const Pair z = { square, V_FUSED(V_ADD(t, t), quotient.low, V_FUSED(t, t, V_NEG(square))) };
    V rest = V_SET1(0x1.500a52p-6f);
    rest = V_FUSED(rest, square, V_SET1(-0x1.9bfa96p-5f));
    rest = V_FUSED(rest, square, V_SET1(0x1.2a0fcep-4f));
    rest = V_FUSED(rest, square, V_SET1(-0x1.71cbd8p-4f));
    rest = V_FUSED(rest, square, V_SET1(0x1.c6e392p-4f));
    rest = V_FUSED(rest, square, V_SET1(-0x1.249104p-3f));
    const V second = V_SET1(0x1.999994p-3f);
    const Pair third = { V_SET1(-0x1.555556p-2f), V_SET1(0x1.555556p-27f) };
    const Pair angle = arc_series(quotient, z, arc_factor(z, third, second, rest));
    return V_COPYSIGN(arc_sum(quarters, one, angle), x);
}

#endif
