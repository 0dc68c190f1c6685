/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of numbers.def in plain C without branches, so that the compiler can vectorise them.
 * Only integers of 32 and 64 bits have a loop for each way to broadcast: indices need them often.
 * Others are those of block_loops.h. Part of typed_loops.h. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_NUMBER_LOOPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_NUMBER_LOOPS_H

#include "backends/cpu/elementwise/block_loops.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/real_math.h"
#include "backends/cpu/elementwise/typed.h"

#include <stdint.h>
#include <string.h>

/* --- integers of every width --- */

/* Quotients of 16 bits are exact enough in f32, those of 32 bits in f64: the exact quotient of two
 * integers is farther from the next integer than the rounding error. INT_MIN / -1 wraps. */
static inline int32_t
quotient_small(float x, float y)
{
    return (int32_t)(x / y);
}

static inline int32_t
quotient_i32(int32_t x, int32_t y)
{
    const double exact = (double)x / (double)y;
    const int32_t inside = (int32_t)(exact < 0x1p31 ? exact : 0);
    return exact < 0x1p31 ? inside : INT32_MIN;
}

static inline uint32_t
quotient_u32(uint32_t x, uint32_t y)
{
    const double exact = (double)x / (double)y;
    return (uint32_t)(int32_t)(__builtin_trunc(exact) - 0x1p31) ^ UINT32_C(0x80000000);
}

static inline int64_t
quotient_i64(int64_t x, int64_t y)
{
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static inline uint64_t
quotient_u64(uint64_t x, uint64_t y)
{
    return x / y;
}

#define QUOTIENT(x, y)                                                                             \
    _Generic((x), int32_t                                                                          \
             : quotient_i32, uint32_t                                                              \
             : quotient_u32, int64_t                                                               \
             : quotient_i64, uint64_t                                                              \
             : quotient_u64, default                                                               \
             : quotient_small)(x, y)

#define BELOW_0(x) ((x) < 1 && (x) != 0)
#define BITS_OF(x) (8 * sizeof(x))

/* In the unsigned image, which wraps. `1u *` keeps 16 bits from becoming int. */
#define ARITHMETIC(id, T, U)                                                                       \
    static inline T times_##id(T x, T y)                                                           \
    {                                                                                              \
        return (T)(1u * (U)x * (U)y);                                                              \
    }                                                                                              \
    static inline T negative_##id(T x)                                                             \
    {                                                                                              \
        return (T)(0u - (U)x);                                                                     \
    }                                                                                              \
    static inline T remainder_##id(T x, T y)                                                       \
    {                                                                                              \
        return (T)((U)x - 1u * (U)QUOTIENT(x, y) * (U)y);                                          \
    }                                                                                              \
    /* With the sign of the divisor. */                                                            \
    static inline T modulo_##id(T x, T y)                                                          \
    {                                                                                              \
        const T rest = remainder_##id(x, y);                                                       \
        const bool other = (rest != 0) & (BELOW_0(rest) != BELOW_0(y));                            \
        return (T)(rest + (other ? y : 0));                                                        \
    }                                                                                              \
    /* By the width of the type or more gives 0. */                                                \
    static inline T left_##id(T x, T y)                                                            \
    {                                                                                              \
        const U places = (U)y;                                                                     \
        const U shifted = (U)((U)x << (places & (BITS_OF(x) - 1)));                                \
        return (T)(places >= BITS_OF(x) ? 0 : shifted);                                            \
    }                                                                                              \
    /* Copies the sign. */                                                                         \
    static inline T right_##id(T x, T y)                                                           \
    {                                                                                              \
        const U places = (U)y, most = BITS_OF(x) - 1;                                              \
        const U sign = (U)(BELOW_0(x) ? ~(U)0 : 0);                                                \
        const U shifted = (U)((U)((U)x ^ sign) >> (places & most));                                \
        return (T)((places > most ? 0 : shifted) ^ sign);                                          \
    }
ARITHMETIC(i8, int8_t, uint8_t)
ARITHMETIC(i16, int16_t, uint16_t)
ARITHMETIC(i32, int32_t, uint32_t)
ARITHMETIC(i64, int64_t, uint64_t)
ARITHMETIC(u8, uint8_t, uint8_t)
ARITHMETIC(u16, uint16_t, uint16_t)
ARITHMETIC(u32, uint32_t, uint32_t)
ARITHMETIC(u64, uint64_t, uint64_t)
#undef ARITHMETIC

#define OF_TYPE(name, x)                                                                           \
    _Generic((x), int8_t                                                                           \
             : name##_i8, int16_t                                                                  \
             : name##_i16, int32_t                                                                 \
             : name##_i32, int64_t                                                                 \
             : name##_i64, uint8_t                                                                 \
             : name##_u8, uint16_t                                                                 \
             : name##_u16, uint32_t                                                                \
             : name##_u32, uint64_t                                                                \
             : name##_u64)
#define NEGATIVE(x) OF_TYPE(negative, x)(x)
#define TIMES(x, y) OF_TYPE(times, x)(x, y)
#define MODULO(x, y) OF_TYPE(modulo, x)(x, y)
#define REMAINDER(x, y) OF_TYPE(remainder, x)(x, y)
#define SHIFT_LEFT(x, y) OF_TYPE(left, x)(x, y)
#define SHIFT_RIGHT(x, y) OF_TYPE(right, x)(x, y)

/* --- loops --- */

/* Elements of T, work in W, results of R. */
#define SPREAD_LOOP(id, dtype, T, W, R, expression)                                                \
    BLOCKS(blocks_##id##_##dtype, T, W, R, expression)                                             \
    static void pair_##id##_##dtype(void *out, const void *a, const void *b, int64_t n,            \
                                    KilnCpuFixed fixed)                                            \
    {                                                                                              \
        run_blocks(blocks_##id##_##dtype, (BlockTypes){ sizeof(T), sizeof(R), NULL }, out, a, b,   \
                   n, fixed);                                                                      \
    }
#define INDEX_LOOP(id, dtype, T, W, R, expression) PAIR_LOOP(pair_##id##_##dtype, R, T, expression)

/* Both kinds of a width share the loop of the unsigned one: SHARES_LOOP says so in the table. */
#define WRAPPING(LOOP, LOOP_OF_INDICES, id, expression)                                            \
    LOOP(id, u8, uint8_t, uint32_t, uint8_t, expression)                                           \
    LOOP(id, u16, uint16_t, uint32_t, uint16_t, expression)                                        \
    LOOP_OF_INDICES(id, u32, uint32_t, uint32_t, uint32_t, expression)                             \
    LOOP_OF_INDICES(id, u64, uint64_t, uint64_t, uint64_t, expression)                             \
    SHARES_##LOOP(id)
#define BITS(LOOP, LOOP_OF_INDICES, id, expression) WRAPPING(LOOP, LOOP, id, expression)
#define EQUAL(LOOP, LOOP_OF_INDICES, id, expression)                                               \
    LOOP(id, u8, uint8_t, uint8_t, uint8_t, expression)                                            \
    LOOP(id, u16, uint16_t, uint16_t, uint8_t, expression)                                         \
    LOOP_OF_INDICES(id, u32, uint32_t, uint32_t, uint8_t, expression)                              \
    LOOP_OF_INDICES(id, u64, uint64_t, uint64_t, uint8_t, expression)                              \
    SHARES_##LOOP(id)
#define SHARES_SPREAD_LOOP(id)
#define SHARES_ONE_LOOP(id)
#define SIGNED(LOOP, LOOP_OF_INDICES, id, expression)                                              \
    LOOP(id, i8, int8_t, int8_t, int8_t, expression)                                               \
    LOOP(id, i16, int16_t, int16_t, int16_t, expression)                                           \
    LOOP(id, i32, int32_t, int32_t, int32_t, expression)                                           \
    LOOP(id, i64, int64_t, int64_t, int64_t, expression)
#define INTS(LOOP, LOOP_OF_INDICES, id, expression)                                                \
    SIGNED(LOOP, LOOP_OF_INDICES, id, expression)                                                  \
    LOOP(id, u8, uint8_t, uint8_t, uint8_t, expression)                                            \
    LOOP(id, u16, uint16_t, uint16_t, uint16_t, expression)                                        \
    LOOP(id, u32, uint32_t, uint32_t, uint32_t, expression)                                        \
    LOOP(id, u64, uint64_t, uint64_t, uint64_t, expression)
#define DIVIDED INTS
#define COMPARED(LOOP, LOOP_OF_INDICES, id, expression)                                            \
    LOOP(id, i8, int8_t, int8_t, uint8_t, expression)                                              \
    LOOP(id, i16, int16_t, int16_t, uint8_t, expression)                                           \
    LOOP_OF_INDICES(id, i32, int32_t, int32_t, uint8_t, expression)                                \
    LOOP_OF_INDICES(id, i64, int64_t, int64_t, uint8_t, expression)                                \
    LOOP(id, u8, uint8_t, uint8_t, uint8_t, expression)                                            \
    LOOP(id, u16, uint16_t, uint16_t, uint8_t, expression)                                         \
    LOOP(id, u32, uint32_t, uint32_t, uint8_t, expression)                                         \
    LOOP(id, u64, uint64_t, uint64_t, uint8_t, expression)
#define NONE(LOOP, LOOP_OF_INDICES, id, expression)

#define ONE_LOOP(id, dtype, T, W, R, expression)                                                   \
    BLOCKS(blocks_of_##id##_##dtype, T, W, R, expression)                                          \
    static void one_##id##_##dtype(void *out, const void *in, int64_t n, const KilnCpuParams *p)   \
    {                                                                                              \
        run_blocks(blocks_of_##id##_##dtype, (BlockTypes){ sizeof(T), sizeof(R), p }, out, in, in, \
                   n, KILN_CPU_NONE_FIXED);                                                        \
    }

#define PAIR(id, CLASS, expression) CLASS(SPREAD_LOOP, INDEX_LOOP, id, expression)
#define REAL_PAIR(id, expression) SPREAD_LOOP(id, f64, double, double, double, expression)
#define REAL_TEST(id, expression) SPREAD_LOOP(id, f64, double, double, uint8_t, expression)
#define ONE(id, CLASS, expression) CLASS(ONE_LOOP, ONE_LOOP, id, expression)
#define REAL_ONE(id, expression) ONE_LOOP(id, f64, double, double, double, expression)
#define ALPHA ((double)((const KilnCpuParams *)more)->a)
#include "backends/cpu/elementwise/numbers.def"
#undef ALPHA

/* more: the two bounds. */
#define CLIP(id, dtype, T, W, R, expression)                                                       \
    BLOCKS(blocks_of_clip_##dtype, T, T, T, expression)                                            \
    static void clip_##dtype(void *out, const void *in, int64_t n, const void *lowest,             \
                             const void *highest)                                                  \
    {                                                                                              \
        T bounds[2];                                                                               \
        memcpy(&bounds[0], lowest, sizeof bounds[0]);                                              \
        memcpy(&bounds[1], highest, sizeof bounds[1]);                                             \
        run_blocks(blocks_of_clip_##dtype, (BlockTypes){ sizeof(T), sizeof(T), bounds }, out, in,  \
                   in, n, KILN_CPU_NONE_FIXED);                                                    \
    }
#define BOUND(T, i) ((const T *)more)[i]
#define RAISED(T) (x > BOUND(T, 0) ? x : BOUND(T, 0))
#define CLIP_INT(id, dtype, T, W, R, expression)                                                   \
    CLIP(id, dtype, T, T, T, RAISED(T) < BOUND(T, 1) ? RAISED(T) : BOUND(T, 1))
INTS(CLIP_INT, CLIP_INT, clip, )
#undef CLIP
#undef CLIP_INT
#undef RAISED

/* A NaN stays. A bound that is NaN makes every element NaN: the third number, which is added, is it
 * then, and else -0, which changes no number. */
static inline double
clip_real(double x, double low, double high)
{
    const double raised = x < low ? low : x;
    return raised > high ? high : raised;
}
BLOCKS(blocks_of_clip_f64, double, double, double,
       clip_real(x, BOUND(double, 0), BOUND(double, 1)) + BOUND(double, 2))
static void
clip_f64(void *out, const void *in, int64_t n, const void *lowest, const void *highest)
{
    double bounds[3];
    memcpy(&bounds[0], lowest, sizeof bounds[0]);
    memcpy(&bounds[1], highest, sizeof bounds[1]);
    bounds[2] = __builtin_isunordered(bounds[0], bounds[1]) ? __builtin_nan("") : -0.0;
    run_blocks(blocks_of_clip_f64, (BlockTypes){ sizeof(double), sizeof(double), bounds }, out, in,
               in, n, KILN_CPU_NONE_FIXED);
}
#undef BOUND

/* more: the mask, the least and the greatest. */
#define BITS_LOOP(name, T)                                                                         \
    BLOCKS(blocks_of_##name, T, T, uint8_t,                                                        \
           ((x & (T)((const uint64_t *)more)[0]) >= (T)((const uint64_t *)more)[1]) &              \
               ((x & (T)((const uint64_t *)more)[0]) <= (T)((const uint64_t *)more)[2]))           \
    static void name(uint8_t *out, const void *in, int64_t n, uint64_t mask, uint64_t low,         \
                     uint64_t high)                                                                \
    {                                                                                              \
        const uint64_t bounds[3] = { mask, low, high };                                            \
        run_blocks(blocks_of_##name, (BlockTypes){ sizeof(T), 1, bounds }, out, in, in, n,         \
                   KILN_CPU_NONE_FIXED);                                                           \
    }
BITS_LOOP(bits_16, uint16_t)
BITS_LOOP(bits_32, uint32_t)
BITS_LOOP(bits_64, uint64_t)
#undef BITS_LOOP

/* --- entries of the table --- */

#define PAIR_AT(id, dtype, loop) .pair[KILN_CPU_PAIR_##id][KILN_DTYPE_##dtype] = pair_##id##_##loop,
#define ONE_AT(id, dtype, loop) .one[KILN_CPU_ONE_##id][KILN_DTYPE_##dtype] = one_##id##_##loop,
#define PAIR_ENTRY(id, dtype, ...) PAIR_AT(id, dtype, dtype)
#define ONE_ENTRY(id, dtype, ...) ONE_AT(id, dtype, dtype)
#define CLIP_ENTRY(id, dtype, ...) .clip[KILN_DTYPE_##dtype] = clip_##dtype,
#define SHARES_PAIR_ENTRY(id)                                                                      \
    PAIR_AT(id, i8, u8) PAIR_AT(id, i16, u16) PAIR_AT(id, i32, u32) PAIR_AT(id, i64, u64)
#define SHARES_ONE_ENTRY(id)                                                                       \
    ONE_AT(id, i8, u8) ONE_AT(id, i16, u16) ONE_AT(id, i32, u32) ONE_AT(id, i64, u64)

#endif
