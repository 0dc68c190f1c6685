/* SPDX-License-Identifier: Apache-2.0 */
/* Remainders of floats, which are exact: x - q y for the whole part q of x / y. Where q is small,
 * the product is exact too, and about 15 operations of f64 find the remainder. A block with other
 * elements, such as a quotient of 2^29, an infinity or NaN, leaves these to the library, which
 * shifts and subtracts. Part of typed_loops.h. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_MOD_LOOPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_MOD_LOOPS_H

#include "backends/cpu/elementwise/block_loops.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/wide_functions.h"
#include "backends/cpu/simd/unrolled.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The whole part of @quotient below 2^31, else 0. */
WIDE_FUNCTION double
whole_part(double quotient)
{
    return (double)(int32_t)(quotient < 0x1p31 ? quotient : 0);
}

/* A quotient that rounds up to a whole number leaves a remainder below 0. */
WIDE_FUNCTION double
rest_above_0(double rest, double y, double x)
{
    return wide_signed(rest < 0 ? rest + y : rest, x);
}

/* q has 29 bits and y 24, so their product has 53. */
WIDE_FUNCTION bool
is_near_f32(double x, double y)
{
    const double size = __builtin_fabs(y);
    return (__builtin_fabs(x) / size < 0x1p29) & (size < __builtin_inf());
}

WIDE_FUNCTION double
rest_f32(double x, double y)
{
    const double a = __builtin_fabs(x), b = __builtin_fabs(y);
    return rest_above_0(a - whole_part(a / b) * b, b, x);
}

/* q has 26 bits. y is rounded up to 26 bits, and the rest of it, below 0, has 27: both products are
 * exact, and so are both differences, because they are multiples of the last bit of y and not above
 * 2^53 of it. */
WIDE_FUNCTION bool
is_near_f64(double x, double y)
{
    const double size = __builtin_fabs(y);
    return (__builtin_fabs(x) / size < 0x1p26) & (size < 0x1p1000);
}

WIDE_FUNCTION double
rest_f64(double x, double y)
{
    const uint64_t low = (UINT64_C(1) << 27) - 1;
    const double a = __builtin_fabs(x), b = __builtin_fabs(y);
    const double q = whole_part(a / b), high = wide_of((wide_bits(b) + low) & ~low);
    return rest_above_0((a - q * high) - q * (b - high), b, x);
}

/* With the sign of the divisor, zeros too. */
WIDE_FUNCTION double
rest_of_divisor(double rest, double y)
{
    const double moved = (rest < 0) == (y < 0) ? rest : rest + y;
    return rest == 0 ? wide_signed(0, y) : moved;
}

#define REST_OF_DIVIDEND(rest, y) (rest)
#define MOD_LOOP(id, dtype, T, SIGN)                                                               \
    static void blocks_##id##_##dtype(void *out, const void *a, const void *b, int64_t blocks,     \
                                      const size_t step[2], const void *more)                      \
    {                                                                                              \
        (void)more;                                                                                \
        for (; blocks > 0; blocks--) {                                                             \
            const T *first = a, *second = b;                                                       \
            T rests[BLOCK];                                                                        \
            bool far = false;                                                                      \
            EACH_BY_ITSELF                                                                         \
            for (int i = 0; i < BLOCK; i++) {                                                      \
                const double x = (double)first[i], y = (double)second[i];                          \
                rests[i] = (T)SIGN(rest_##dtype(x, y), y);                                         \
            }                                                                                      \
            for (int i = 0; i < BLOCK; i++)                                                        \
                far |= !is_near_##dtype((double)first[i], (double)second[i]);                      \
            for (int i = 0; far && i < BLOCK; i++) {                                               \
                const double x = (double)first[i], y = (double)second[i];                          \
                if (!is_near_##dtype(x, y))                                                        \
                    rests[i] = (T)SIGN(fmod(x, y), y);                                             \
            }                                                                                      \
            memcpy(out, rests, sizeof rests);                                                      \
            out = (char *)out + sizeof rests;                                                      \
            a = (const char *)a + step[0];                                                         \
            b = (const char *)b + step[1];                                                         \
        }                                                                                          \
    }                                                                                              \
    static void pair_##id##_##dtype(void *out, const void *a, const void *b, int64_t n,            \
                                    KilnCpuFixed fixed)                                            \
    {                                                                                              \
        run_blocks(blocks_##id##_##dtype, (BlockTypes){ sizeof(T), sizeof(T), NULL }, out, a, b,   \
                   n, fixed);                                                                      \
    }
MOD_LOOP(mod, f32, float, rest_of_divisor)
MOD_LOOP(mod, f64, double, rest_of_divisor)
MOD_LOOP(mod_of_c, f32, float, REST_OF_DIVIDEND)
MOD_LOOP(mod_of_c, f64, double, REST_OF_DIVIDEND)
#undef MOD_LOOP
#undef REST_OF_DIVIDEND

#define MOD_ENTRIES                                                                                \
    PAIR_ENTRY(mod, f32)                                                                           \
    PAIR_ENTRY(mod, f64)                                                                           \
    PAIR_ENTRY(mod_of_c, f32)                                                                      \
    PAIR_ENTRY(mod_of_c, f64)

#endif
