/* SPDX-License-Identifier: Apache-2.0 */
/* More of the vector vocabulary, for any processor: comparisons, selection, bits, rounding. B is a
 * truth value per lane (all bits or none), VI 4 integers of 32 bits. */
#ifndef KILN_BACKENDS_CPU_SIMD_SIMD_OPS_PORTABLE_H
#define KILN_BACKENDS_CPU_SIMD_SIMD_OPS_PORTABLE_H

#include "backends/cpu/simd/reinterpret.h"
#include "backends/cpu/simd/simd_portable.h"

#include <math.h> /* FP_FAST_FMAF */
#include <stdbool.h>
#include <string.h>

typedef int32_t VI __attribute__((vector_size(16)));
typedef VI B;
typedef uint32_t VIWrapping __attribute__((vector_size(16)));

REINTERPRET(bits_of, VI, V)
REINTERPRET(from_bits, V, VI)

#define V_SUB(a, b) ((a) - (b))
#define V_DIV(a, b) ((a) / (b))
#define V_SQRT(x) square_root(x)
/* a b + c and c - a b, rounded once. */
#define V_FUSED(a, b, c) fused(a, b, c, false)
#define V_FUSED_FROM(a, b, c) fused(a, b, c, true)
#define V_FLOOR(x) round_down(x)
#define V_CEIL(x) V_NEG(round_down(V_NEG(x)))
#define V_ROUND(x) round_even(x)
/* Comparisons except V_NAN are false for a NaN. */
#define V_LT(a, b) ((B)((a) < (b)))
#define V_LE(a, b) ((B)((a) <= (b)))
#define V_EQ(a, b) ((B)((a) == (b)))
#define V_NAN(x) ((B)((x) != (x)))
#define V_SELECT(b, yes, no) from_bits(((b)&bits_of(yes)) | (~(b)&bits_of(no)))
#define V_ABS(x) from_bits(bits_of(x) & VI_SET1(INT32_MAX))
#define V_NEG(x) (-(x))
#define V_AND(a, b) from_bits(bits_of(a) & bits_of(b))
#define V_OR(a, b) from_bits(bits_of(a) | bits_of(b))
#define V_COPYSIGN(x, sign)                                                                        \
    from_bits((bits_of(x) & VI_SET1(INT32_MAX)) | (bits_of(sign) & VI_SET1(INT32_MIN)))
#define V_BITS(x) bits_of(x)
#define V_FROM_BITS(i) from_bits(i)
#define VI_SET1(i) ((VI){ (i), (i), (i), (i) })
#define VI_ADD(a, b) ((VI)((VIWrapping)(a) + (VIWrapping)(b)))
#define VI_SUB(a, b) ((VI)((VIWrapping)(a) - (VIWrapping)(b)))
#define VI_SHL(a, n) ((VI)((VIWrapping)(a) << (n)))
#define VI_SHR(a, n) ((a) >> (n)) /* keeps the sign */
#define VI_TO_V(i) __builtin_convertvector(i, V)
#define V_SCALE(p, n_float, n_int) ((void)(n_float), scale(p, n_int))
/* One value of all lanes. A sum adds them in halves: lanes k and k + 2, ... */
#define V_SUM(x) (((x)[0] + (x)[2]) + ((x)[1] + (x)[3]))
#define V_LARGEST(x) largest_lane(x) /* no lane is NaN */
#define V_ANY(b) (((b)[0] | (b)[1] | (b)[2] | (b)[3]) != 0)
#define V_LOAD_EVERY(p, stride) load_every(p, stride)
#define V_LOAD_BOOL(p) load_bool(p, 4)
#define V_LOAD_BOOL_SOME(p, n) load_bool(p, n)
#define V_STORE_BOOL(p, b) store_bool(p, 4, b)
#define V_STORE_BOOL_SOME(p, n, b) store_bool(p, n, b)

#ifdef FP_FAST_FMAF
static inline V
fused(V a, V b, V c, bool from)
{
    V x;
    for (int i = 0; i < 4; i++)
        x[i] = __builtin_fmaf(from ? -a[i] : a[i], b[i], c[i]);
    return x;
}
#else
/* The product is exact in double, but the sum is rounded. Rounding it again, to float, goes wrong
   only if it lies halfway between two floats and the exact sum does not. Then the last bit of the
   sum is made odd, towards the exact sum. */
static inline float
fused_lane(float a, float b, float c)
{
    const double product = (double)a * (double)b, sum = product + (double)c;
    const double part = sum - product, lost = (product - (sum - part)) + ((double)c - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (lost != 0 && lost == lost && !(bits & 1))
        bits += (lost > 0) == (sum > 0) ? 1 : UINT64_MAX;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

/* A sum that lies halfway ends with a one and 28 zeros, unless the result is denormal. c - a b is
   computed as a difference, not by negation, so that NaNs keep their sign. */
static inline V
fused(V a, V b, V c, bool from)
{
    typedef double Wide __attribute__((vector_size(32)));
    typedef int32_t Words __attribute__((vector_size(32)));
    const Wide product = __builtin_convertvector(a, Wide) * __builtin_convertvector(b, Wide);
    const Wide wide = __builtin_convertvector(c, Wide),
               sum = from ? wide - product : product + wide;
    V x = __builtin_convertvector(sum, V);
    Words words;
    memcpy(&words, &sum, sizeof words);
    const VI low = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                       ? (VI){ words[0], words[2], words[4], words[6] }
                       : (VI){ words[1], words[3], words[5], words[7] };
    const VI small = (VI)(x < 0x1p-125f) & (VI)(x > -0x1p-125f);
    const VI doubtful = ((low & 0x1fffffff) == 0x10000000) | small;
    if (doubtful[0] | doubtful[1] | doubtful[2] | doubtful[3]) {
        for (int i = 0; i < 4; i++)
            x[i] = doubtful[i] ? fused_lane(from ? -a[i] : a[i], b[i], c[i]) : x[i];
    }
    return x;
}
#endif

static inline V
square_root(V x)
{
    for (int i = 0; i < 4; i++)
        x[i] = sqrtf(x[i]);
    return x;
}

/* Rounds half to even. Floats from 2^23 on are whole; adding 2^23 rounds smaller ones. */
static inline V
round_even(V x)
{
    const V big = V_SET1(0x1p23f);
    V magnitude = V_ABS(x), rounded = (magnitude + big) - big;
    return V_COPYSIGN(V_SELECT(V_LT(magnitude, big), rounded, magnitude), x);
}

static inline V
round_down(V x)
{
    V near = round_even(x);
    return V_COPYSIGN(V_SELECT(V_LT(x, near), near - V_SET1(1.0f), near), x);
}

/* p × 2^n for n from -252 to 254, in two products. Only the last can round. */
static inline V
scale(V p, VI n)
{
    VI half = VI_SHR(n, 1), rest = VI_SUB(n, half);
    p *= from_bits(VI_SHL(VI_ADD(half, VI_SET1(127)), 23));
    return p * from_bits(VI_SHL(VI_ADD(rest, VI_SET1(127)), 23));
}

/* Bytes of bool: read as "not 0", written as 0 and 1. */
static inline B
load_bool(const uint8_t *p, int64_t n)
{
    B b = { 0, 0, 0, 0 };
    for (int64_t i = 0; i < n; i++)
        b[i] = p[i] ? -1 : 0;
    return b;
}

static inline void
store_bool(uint8_t *p, int64_t n, B b)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)(b[i] & 1);
}

static inline float
largest_lane(V x)
{
    float a = x[0] > x[2] ? x[0] : x[2], b = x[1] > x[3] ? x[1] : x[3];
    return a > b ? a : b;
}

/* p[0], p[stride] … */
static inline V
load_every(const float *p, int64_t stride)
{
    return (V){ p[0], p[stride], p[2 * stride], p[3 * stride] };
}

#endif
