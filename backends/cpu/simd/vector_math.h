/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one vector, in the vocabulary of simd_ops_*.h. Each lane depends on its own operand
 * only. It has the same bits with every instruction set, because a product that is added is never
 * rounded by itself. NaN gives NaN. Infinities and zeros give the value of the function. If a NaN
 * would meet its negation in a sum, the code selects it explicitly: the compiler chooses which of
 * two NaNs a sum is.
 *
 * Errors are at most 2 units in the last place of the exact result, rounded to float, for exp, log,
 * tanh, sigmoid, erf, softplus, gelu, and swish with an alpha of 1. That holds for all floats,
 * denormal results included. The error of gelu_tanh, itself an approximation, is at most 2^-22 |x|.
 *
 * The polynomials are minimax fits of this project (Remez exchange, relative error). Their
 * coefficients were rounded to float one after the other. */
#ifndef KILN_BACKENDS_CPU_SIMD_VECTOR_MATH_H
#define KILN_BACKENDS_CPU_SIMD_VECTOR_MATH_H

#include <math.h>

/* n = round(x / ln 2) and r = x - n ln 2. The high part of ln 2 has so few bits that its product
   with n is exact. Adding 1.5 × 2^23 leaves n in the low bits of the sum. */
typedef struct {
    V n, r;
    VI whole;
} Reduced;

static inline Reduced
reduce(V x)
{
    const V magic = V_SET1(0x1.8p23f);
    V sum = V_FUSED(x, V_SET1(0x1.715476p0f), magic);
    V n = V_SUB(sum, magic);
    V r = V_FUSED_FROM(n, V_SET1(0x1.63p-1f), x);
    r = V_FUSED_FROM(n, V_SET1(-0x1.bd0106p-13f), r);
    return (Reduced){ n, r, VI_SUB(V_BITS(sum), V_BITS(magic)) };
}

/* e^r - 1 for |r| up to ln 2 / 2. */
static inline V
expm1_reduced(V r)
{
    V q = V_SET1(0x1.6abf82p-10f);
    q = V_FUSED(q, r, V_SET1(0x1.123d88p-7f));
    q = V_FUSED(q, r, V_SET1(0x1.555858p-5f));
    q = V_FUSED(q, r, V_SET1(0x1.55548cp-3f));
    q = V_FUSED(q, r, V_SET1(0x1.fffffcp-2f));
    return V_FUSED(V_MUL(r, r), q, r);
}

static inline V
vector_exp(V x)
{
    x = V_MAX(V_SET1(-104.0f), V_MIN(V_SET1(89.0f), x)); /* beyond, the result is 0 or infinite */
    Reduced at = reduce(x);
    return V_SCALE(V_ADD(V_SET1(1.0f), expm1_reduced(at.r)), at.n, at.whole);
}

/* 2^n for n from -126 to 127. */
static inline V
power_of_two(VI n)
{
    return V_FROM_BITS(VI_SHL(VI_ADD(n, VI_SET1(127)), 23));
}

/* e^x for x from -87 to 88, which neither overflows nor underflows. */
static inline V
exp_inside(V x)
{
    Reduced at = reduce(x);
    return V_MUL(V_ADD(V_SET1(1.0f), expm1_reduced(at.r)), power_of_two(at.whole));
}

/* e^x - 1 for x up to 0. */
static inline V
expm1_negative(V x)
{
    Reduced at = reduce(V_MAX(V_SET1(-30.0f), V_MIN(V_SET1(0.0f), x)));
    V power = power_of_two(at.whole);
    V y = V_FUSED(power, expm1_reduced(at.r), V_SUB(power, V_SET1(1.0f)));
    return V_COPYSIGN(y, x); /* for zeros */
}

/* log(x + x carry) for a positive normal x and a small @carry. */
static inline V
log_normal(V x, V exponent_offset, V carry)
{
    const VI root_half = V_BITS(V_SET1(0x1.6a09e6p-1f));
    VI bits = V_BITS(x);
    VI e = VI_SHR(VI_SUB(bits, root_half), 23);
    V f = V_SUB(V_FROM_BITS(VI_SUB(bits, VI_SHL(e, 23))), V_SET1(1.0f));
    V n = V_ADD(VI_TO_V(e), exponent_offset);
    V p = V_SET1(0x1.14582cp-4f);
    p = V_FUSED(p, f, V_SET1(-0x1.de3c96p-4f));
    p = V_FUSED(p, f, V_SET1(0x1.e6f076p-4f));
    p = V_FUSED(p, f, V_SET1(-0x1.fc21f2p-4f));
    p = V_FUSED(p, f, V_SET1(0x1.233766p-3f));
    p = V_FUSED(p, f, V_SET1(-0x1.555c4ep-3f));
    p = V_FUSED(p, f, V_SET1(0x1.99a4b6p-3f));
    p = V_FUSED(p, f, V_SET1(-0x1.000006p-2f));
    p = V_FUSED(p, f, V_SET1(0x1.555548p-2f));
    V square = V_MUL(f, f);
    V y = V_FUSED(V_MUL(square, f), p, carry);
    y = V_FUSED(n, V_SET1(-0x1.bd0106p-13f), y);
    y = V_FUSED_FROM(V_SET1(0.5f), square, y);
    return V_FUSED(n, V_SET1(0x1.63p-1f), V_ADD(f, y));
}

static inline V
vector_log(V x)
{
    const V zero = V_SET1(0.0f), infinity = V_SET1(__builtin_inff());
    B denormal = V_LT(x, V_SET1(0x1p-126f));
    V scaled = V_SELECT(denormal, V_MUL(x, V_SET1(0x1p25f)), x);
    V y = log_normal(scaled, V_SELECT(denormal, V_SET1(-25.0f), zero), zero);
    y = V_SELECT(V_EQ(x, zero), V_NEG(infinity), y);
    y = V_SELECT(V_EQ(x, infinity), x, y);
    y = V_SELECT(V_LT(x, zero), V_SET1(__builtin_nanf("")), y);
    return V_SELECT(V_NAN(x), x, y);
}

/* A polynomial around zero. Elsewhere 1 - 2 / (e^2|x| + 1), which is 1 from |x| = 9.1 on. */
static inline V
vector_tanh(V x)
{
    V magnitude = V_MIN(V_SET1(10.0f), V_ABS(x)), square = V_MUL(magnitude, magnitude);
    V p = V_SET1(0x1.078af0p-9f);
    p = V_FUSED(p, square, V_SET1(-0x1.0713180p-7f));
    p = V_FUSED(p, square, V_SET1(0x1.62873ep-6f));
    p = V_FUSED(p, square, V_SET1(-0x1.b9d632p-5f));
    p = V_FUSED(p, square, V_SET1(0x1.110fe8p-3f));
    p = V_FUSED(p, square, V_SET1(-0x1.555552p-2f));
    V near = V_FUSED(V_MUL(square, magnitude), p, magnitude);
    V e = exp_inside(V_ADD(magnitude, magnitude));
    V far = V_SUB(V_SET1(1.0f), V_DIV(V_SET1(2.0f), V_ADD(e, V_SET1(1.0f))));
    return V_COPYSIGN(V_SELECT(V_LT(magnitude, V_SET1(0.625f)), near, far), x);
}

/* 1 / (1 + e) or e / (1 + e) with e = e^-|x|, so that nothing overflows and small results keep
   their digits. The last step corrects the rounding error of 1 + e. */
static inline V
vector_sigmoid(V x)
{
    const V one = V_SET1(1.0f);
    B negative = V_LT(x, V_SET1(0.0f));
    V e = vector_exp(V_NEG(V_ABS(x)));
    V sum = V_ADD(one, e), lost = V_SUB(e, V_SUB(sum, one));
    V y = V_DIV(V_SELECT(negative, e, one), sum);
    V inverse = V_SELECT(negative, V_SUB(one, y), y);
    return V_FUSED_FROM(V_MUL(y, inverse), lost, y);
}

/* 2^n for whole n from -126 to 127. The sum has the biased exponent in its low bits. */
static inline V
power_of_whole(V n)
{
    return V_FROM_BITS(VI_SHL(V_BITS(V_ADD(n, V_SET1(0x1.8p23f + 127.0f))), 23));
}

/* x / (1 + e^-ax), where e^-ax = (1 + q) 2^n. Numerator and denominator are divided by the larger
   of 1 and 2^n, so that nothing overflows. The sum is then 1 + (2^-|n| + q 2^min(n, 0)). Only its
   two additions round. If e^-ax is above all floats, the result is x 0. */
static inline V
vector_swish(V x, V a)
{
    const V zero = V_SET1(0.0f), magic = V_SET1(0x1.8p23f);
    V t = V_NEG(V_MUL(a, x));
    Reduced at = reduce(V_MAX(V_SET1(-30.0f), t)); /* below, the sum is 1 */
    V down = V_MIN(zero, V_NEG(at.n)), up = V_MIN(zero, at.n);
    V least = power_of_whole(V_MAX(V_SET1(-126.0f), V_ADD(down, up)));
    V sum = V_FUSED(expm1_reduced(at.r), power_of_whole(up), least);
    V scaled = V_SCALE(x, down, VI_SUB(V_BITS(V_ADD(down, magic)), V_BITS(magic)));
    V y = V_DIV(scaled, V_ADD(V_SET1(1.0f), sum));
    return V_SELECT(V_LT(V_SET1(150.0f), t), V_MUL(x, zero), y);
}

/* x + x p(x²) around zero. Elsewhere 1 - e^-p(|x|), which is 1 from |x| = 3.92 on. */
static inline V
vector_erf(V x)
{
    V t = V_MIN(V_SET1(3.95f), V_ABS(x)), square = V_MUL(t, t);
    V p = V_SET1(0x1.4d287cp-14f);
    p = V_FUSED(p, square, V_SET1(-0x1.a583bep-11f));
    p = V_FUSED(p, square, V_SET1(0x1.543f2ap-8f));
    p = V_FUSED(p, square, V_SET1(-0x1.b80062p-6f));
    p = V_FUSED(p, square, V_SET1(0x1.ce2d60p-4f));
    p = V_FUSED(p, square, V_SET1(-0x1.812740p-2f));
    p = V_FUSED(p, square, V_SET1(0x1.06eba8p-3f));
    V near = V_FUSED(t, p, t);
    V g = V_SET1(0x1.5ec852p-16f);
    g = V_FUSED(g, t, V_SET1(-0x1.c549aep-12f));
    g = V_FUSED(g, t, V_SET1(0x1.10a90ep-8f));
    g = V_FUSED(g, t, V_SET1(-0x1.9b18d2p-6f));
    g = V_FUSED(g, t, V_SET1(0x1.bb562ap-4f));
    g = V_FUSED(g, t, V_SET1(0x1.444b44p-1f));
    g = V_FUSED(g, t, V_SET1(0x1.212698p+0f));
    g = V_FUSED(g, t, V_SET1(-0x1.65ad8ep-13f));
    V far = V_SUB(V_SET1(1.0f), exp_inside(V_NEG(g)));
    return V_COPYSIGN(V_SELECT(V_LT(t, V_SET1(0.9f)), near, far), x);
}

/* max(x, 0) + log(1 + e^-|x|). The logarithm includes the rounding error of 1 + e. */
static inline V
vector_softplus(V x)
{
    const V one = V_SET1(1.0f);
    V e = vector_exp(V_NEG(V_ABS(x)));
    V u = V_ADD(one, e), lost = V_SUB(e, V_SUB(u, one));
    V log1p = log_normal(u, V_SET1(0.0f), V_DIV(lost, u));
    return V_SELECT(V_NAN(x), x, V_ADD(V_MAX(V_SET1(0.0f), x), log1p));
}

/* e^(z²/2) erfc(z / √2) for w = 1 / (1 + 3z/8) and z from 0 to 14.3. It is w times a polynomial
   around the middle, where its value is close to a float. @lost is the rounding error. */
static inline V
gelu_tail(V w, V *lost)
{
    V u = V_SUB(w, V_SET1(0x1.283bbep-1f));
    V g = V_SET1(0x1.0b630ap-6f);
    g = V_FUSED(g, u, V_SET1(0x1.785d86p-5f));
    g = V_FUSED(g, u, V_SET1(-0x1.d3b060p-5f));
    g = V_FUSED(g, u, V_SET1(-0x1.8efeb4p-5f));
    g = V_FUSED(g, u, V_SET1(0x1.d39604p-4f));
    g = V_FUSED(g, u, V_SET1(0x1.394726p-6f));
    g = V_FUSED(g, u, V_SET1(-0x1.abe722p-3f));
    g = V_FUSED(g, u, V_SET1(-0x1.655b68p-6f));
    g = V_FUSED(g, u, V_SET1(0x1.000510p-1f));
    g = V_FUSED(g, u, V_SET1(0x1.8aa650p-1f));
    const V middle = V_SET1(0x1.300c5ep-1f);
    V sum = V_FUSED(g, u, middle), sum_lost = V_FUSED(g, u, V_SUB(middle, sum));
    V product = V_MUL(w, sum);
    *lost = V_FUSED(w, sum_lost, V_FUSED(w, sum, V_NEG(product)));
    return product;
}

/* x Φ(x) = max(x, 0) - |x| Φ(-|x|), where Φ(-|x|) = e^(-x²/2) h / 2 and gelu_tail() gives h. It is
   scaled at the end, so that small results keep their digits. The rounding errors of square,
   quotient, power and products are corrected. If the power is below all floats, the result is x 0.
 */
static inline V
vector_gelu(V x)
{
    const V one = V_SET1(1.0f), half = V_SET1(0.5f), eighths = V_SET1(0.375f);
    V z = V_MIN(V_SET1(14.5f), V_ABS(x)), square = V_MUL(z, z);
    V d = V_FUSED(eighths, z, one), d_lost = V_FUSED(eighths, z, V_SUB(one, d));
    V w = V_DIV(one, d), w_share = V_FUSED_FROM(w, d_lost, V_FUSED_FROM(w, d, one)), h_lost;
    V h = gelu_tail(w, &h_lost);
    Reduced at = reduce(V_MUL(V_SET1(-0.5f), square));
    V q = expm1_reduced(at.r), p = V_ADD(one, q), p_lost = V_SUB(q, V_SUB(p, one));
    V factor = V_MUL(half, p), tail = V_MUL(h, factor);
    /* Relative errors of the tail. An error of w counts about 1 + w times. */
    V share = V_FUSED_FROM(half, V_FUSED(z, z, V_NEG(square)), p_lost);
    share = V_ADD(share, V_FUSED(w_share, w, w_share));
    V lost = V_FUSED(factor, h_lost, V_FUSED(h, factor, V_NEG(tail)));
    lost = V_FUSED(tail, share, lost);
    V y = V_SCALE(V_FUSED(z, tail, V_MUL(z, lost)), at.n, at.whole);
    y = V_SUB(V_MAX(V_SET1(0.0f), x), y);
    y = V_SELECT(V_LT(x, V_SET1(-14.5f)), V_MUL(x, V_SET1(0.0f)), y);
    return V_SELECT(V_NAN(x), x, y);
}

/* x / (1 + e^-2y) with y = √(2/π) (x + 0.044715 x³), which is x (1 + tanh y) / 2. */
static inline V
vector_gelu_tanh(V x)
{
    V cube = V_MUL(V_MUL(x, x), V_MUL(x, V_SET1(0.044715f)));
    V e = vector_exp(V_MUL(V_SET1(-1.5957691216057308f), V_ADD(x, cube)));
    return V_DIV(x, V_ADD(V_SET1(1.0f), e));
}

/* x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2). */
static inline V
vector_mish(V x)
{
    const V two = V_SET1(2.0f);
    V e = vector_exp(V_MIN(V_SET1(20.0f), x)), n = V_MUL(e, V_ADD(e, two));
    return V_MUL(x, V_DIV(n, V_ADD(n, two)));
}

#endif
