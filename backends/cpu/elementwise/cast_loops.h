/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of casts: between floats and what they meet, and among integers and bools. Part of
 * typed_loops.h. A narrower integer keeps the low bits, so that both kinds of a width share a loop.
 * Casts between integers of one width move bytes and have no loop. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_CAST_LOOPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_CAST_LOOPS_H

#include "backends/cpu/elementwise/block_loops.h"
#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/quantized_steps.h"
#include "backends/cpu/simd/reinterpret.h"
#include "backends/cpu/simd/unrolled.h"
#include "graph/kiln-types.h"

#include <stdint.h>

#define CAST(name, T, U, expression)                                                               \
    static void name(void *out, const void *in, int64_t n)                                         \
    {                                                                                              \
        T *to = out;                                                                               \
        const U *from = in;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const U x = from[i];                                                                   \
            to[i] = (T)(expression);                                                               \
        }                                                                                          \
    }

/* The upper bound is the greatest float below 2^31 (2^63). The type's maximum is no float. */
static inline int32_t
to_i32(float x)
{
    const int32_t inside = (int32_t)within(x, -0x1p31f, 0x1.fffffep30f);
    const int32_t saturated = x >= 0x1p31f ? INT32_MAX : inside;
    return x != x ? 0 : saturated;
}

static inline int64_t
to_i64(float x)
{
    const int64_t inside = (int64_t)within(x, -0x1p63f, 0x1.fffffep62f);
    const int64_t saturated = x >= 0x1p63f ? INT64_MAX : inside;
    return x != x ? 0 : saturated;
}

static inline int32_t
to_small(float x, float low, float high)
{
    const int32_t inside = (int32_t)within(x, low, high);
    return x != x ? 0 : inside;
}

static inline uint32_t
wide_to_u32(double x)
{
    const double inside = x > 0 ? x < 0x1p32 ? x : 0x1.fffffffep31 : 0;
    return (uint32_t)(int32_t)(__builtin_trunc(inside) - 0x1p31) ^ UINT32_C(0x80000000);
}

static inline uint64_t
wide_to_u64(double x)
{
    const uint64_t inside = (uint64_t)(x > 0 && x < 0x1p64 ? x : 0);
    return x >= 0x1p64 ? UINT64_MAX : inside;
}

static inline int64_t
wide_to_i64(double x)
{
    const int64_t inside = (int64_t)(x >= -0x1p63 && x < 0x1p63 ? x : 0);
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : inside;
}

static inline int32_t
wide_to_i32(double x, int32_t least, int32_t most)
{
    const double raised = x > (double)least ? x : (double)least;
    const int32_t inside = (int32_t)(raised < (double)most ? raised : (double)most);
    return x != x ? 0 : inside;
}

REINTERPRET(cast_bits, uint32_t, float)
REINTERPRET(cast_wide, float, uint32_t)

/* The upper 16 bits, rounded half to even. A NaN stays a NaN. */
static inline uint16_t
to_bf16(float x)
{
    const uint32_t bits = cast_bits(x);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((x != x ? bits | 0x400000 : rounded) >> 16);
}

static inline float
from_bf16(uint16_t x)
{
    return cast_wide((uint32_t)x << 16);
}

#define RARE_CAST(name, T, U, expression)                                                          \
    BLOCKS(blocks_##name, U, U, T, expression)                                                     \
    static void name(void *out, const void *in, int64_t n)                                         \
    {                                                                                              \
        run_blocks(blocks_##name, (BlockTypes){ sizeof(U), sizeof(T), NULL }, out, in, in, n,      \
                   KILN_CPU_NONE_FIXED);                                                           \
    }

/* True if all of a block are numbers between these bounds. Those that are not are counted in
 * doubles, which vectors of any processor compare and add. */
static bool
block_is_between(const double *x, double low, double high)
{
    double odd[8] = { 0 };
    for (int i = 0; i < BLOCK; i += 8) {
        UNROLLED
        for (int k = 0; k < 8; k++)
            odd[k] += x[i + k] > low && x[i + k] < high ? 0.0 : 1.0;
    }
    for (int k = 1; k < 8; k++)
        odd[0] += odd[k];
    return odd[0] == 0;
}

/* Integers of up to 32 bits. A block without NaN and numbers that saturate, as most are, takes one
 * conversion. */
#define CAST_F64(name, T, least, most)                                                             \
    BLOCKS(saturate_##name, double, double, T, wide_to_i32(x, least, most))                        \
    BLOCKS(convert_##name, double, double, T, (int32_t)x)                                          \
    static void blocks_##name(void *out, const void *a, const void *b, int64_t blocks,             \
                              const size_t step[2], const void *more)                              \
    {                                                                                              \
        T *to = out;                                                                               \
        for (const double *from = a; blocks > 0; blocks--, from += BLOCK, to += BLOCK) {           \
            const bool between = block_is_between(from, (double)(least)-1, (double)(most) + 1);    \
            (between ? convert_##name : saturate_##name)(to, from, b, 1, step, more);              \
        }                                                                                          \
    }                                                                                              \
    static void name(void *out, const void *in, int64_t n)                                         \
    {                                                                                              \
        run_blocks(blocks_##name, (BlockTypes){ sizeof(double), sizeof(T), NULL }, out, in, in, n, \
                   KILN_CPU_NONE_FIXED);                                                           \
    }

CAST(f32_to_bf16, uint16_t, float, to_bf16(x))
CAST(bf16_to_f32, float, uint16_t, from_bf16(x))
RARE_CAST(i8_to_u16, uint16_t, int8_t, x)
RARE_CAST(i8_to_u32, uint32_t, int8_t, x)
RARE_CAST(i8_to_u64, uint64_t, int8_t, x)
RARE_CAST(u8_to_bool, uint8_t, uint8_t, x != 0)
CAST(i8_to_f32, float, int8_t, x)
RARE_CAST(i8_to_f64, double, int8_t, x)
RARE_CAST(u16_to_u8, uint8_t, uint16_t, x)
RARE_CAST(i16_to_u32, uint32_t, int16_t, x)
RARE_CAST(i16_to_u64, uint64_t, int16_t, x)
RARE_CAST(u16_to_bool, uint8_t, uint16_t, x != 0)
RARE_CAST(i16_to_f32, float, int16_t, x)
RARE_CAST(i16_to_f64, double, int16_t, x)
RARE_CAST(u32_to_u8, uint8_t, uint32_t, x)
RARE_CAST(u32_to_u16, uint16_t, uint32_t, x)
CAST(i32_to_u64, uint64_t, int32_t, x)
CAST(u32_to_bool, uint8_t, uint32_t, x != 0)
CAST(i32_to_f32, float, int32_t, x)
RARE_CAST(i32_to_f64, double, int32_t, x)
RARE_CAST(u64_to_u8, uint8_t, uint64_t, x)
RARE_CAST(u64_to_u16, uint16_t, uint64_t, x)
CAST(u64_to_u32, uint32_t, uint64_t, x)
CAST(u64_to_bool, uint8_t, uint64_t, x != 0)
CAST(i64_to_f32, float, int64_t, x)
RARE_CAST(i64_to_f64, double, int64_t, x)
RARE_CAST(u8_to_u16, uint16_t, uint8_t, x)
RARE_CAST(u8_to_u32, uint32_t, uint8_t, x)
RARE_CAST(u8_to_u64, uint64_t, uint8_t, x)
CAST(u8_to_f32, float, uint8_t, x)
RARE_CAST(u8_to_f64, double, uint8_t, x)
RARE_CAST(u16_to_u32, uint32_t, uint16_t, x)
RARE_CAST(u16_to_u64, uint64_t, uint16_t, x)
RARE_CAST(u16_to_f32, float, uint16_t, x)
RARE_CAST(u16_to_f64, double, uint16_t, x)
RARE_CAST(u32_to_u64, uint64_t, uint32_t, x)
RARE_CAST(u32_to_f32, float, uint32_t, x)
RARE_CAST(u32_to_f64, double, uint32_t, x)
RARE_CAST(u64_to_f32, float, uint64_t, x)
RARE_CAST(u64_to_f64, double, uint64_t, x)
RARE_CAST(bool_to_u8, uint8_t, uint8_t, x != 0)
RARE_CAST(bool_to_u16, uint16_t, uint8_t, x != 0)
CAST(bool_to_u32, uint32_t, uint8_t, x != 0)
CAST(bool_to_u64, uint64_t, uint8_t, x != 0)
CAST(bool_to_f32, float, uint8_t, x != 0)
RARE_CAST(bool_to_f64, double, uint8_t, x != 0)
CAST(f32_to_i8, int8_t, float, to_small(x, INT8_MIN, INT8_MAX))
RARE_CAST(f32_to_i16, int16_t, float, to_small(x, INT16_MIN, INT16_MAX))
CAST(f32_to_i32, int32_t, float, to_i32(x))
CAST(f32_to_i64, int64_t, float, to_i64(x))
CAST(f32_to_u8, uint8_t, float, to_small(x, 0, UINT8_MAX))
RARE_CAST(f32_to_u16, uint16_t, float, to_small(x, 0, UINT16_MAX))
RARE_CAST(f32_to_u32, uint32_t, float, wide_to_u32((double)x))
RARE_CAST(f32_to_u64, uint64_t, float, wide_to_u64((double)x))
CAST(f32_to_bool, uint8_t, float, x != 0)
RARE_CAST(f32_to_f64, double, float, x)
CAST_F64(f64_to_i8, int8_t, INT8_MIN, INT8_MAX)
CAST_F64(f64_to_i16, int16_t, INT16_MIN, INT16_MAX)
CAST_F64(f64_to_i32, int32_t, INT32_MIN, INT32_MAX)
RARE_CAST(f64_to_i64, int64_t, double, wide_to_i64(x))
CAST_F64(f64_to_u8, uint8_t, 0, UINT8_MAX)
CAST_F64(f64_to_u16, uint16_t, 0, UINT16_MAX)
RARE_CAST(f64_to_u32, uint32_t, double, wide_to_u32(x))
RARE_CAST(f64_to_u64, uint64_t, double, wide_to_u64(x))
RARE_CAST(f64_to_bool, uint8_t, double, x != 0)
RARE_CAST(f64_to_f32, float, double, x)

/* --- entries of the table --- */

#define FROM_TO(from, to, loop) .cast[KILN_DTYPE_##from][KILN_DTYPE_##to] = loop,
/* clang-format off */
#define CAST_ENTRIES \
    FROM_TO(i8, i16, i8_to_u16) \
    FROM_TO(i8, i32, i8_to_u32) \
    FROM_TO(i8, i64, i8_to_u64) \
    FROM_TO(i8, u16, i8_to_u16) \
    FROM_TO(i8, u32, i8_to_u32) \
    FROM_TO(i8, u64, i8_to_u64) \
    FROM_TO(i8, bool, u8_to_bool) \
    FROM_TO(i8, f32, i8_to_f32) \
    FROM_TO(i8, f64, i8_to_f64) \
    FROM_TO(i16, i8, u16_to_u8) \
    FROM_TO(i16, i32, i16_to_u32) \
    FROM_TO(i16, i64, i16_to_u64) \
    FROM_TO(i16, u8, u16_to_u8) \
    FROM_TO(i16, u32, i16_to_u32) \
    FROM_TO(i16, u64, i16_to_u64) \
    FROM_TO(i16, bool, u16_to_bool) \
    FROM_TO(i16, f32, i16_to_f32) \
    FROM_TO(i16, f64, i16_to_f64) \
    FROM_TO(i32, i8, u32_to_u8) \
    FROM_TO(i32, i16, u32_to_u16) \
    FROM_TO(i32, i64, i32_to_u64) \
    FROM_TO(i32, u8, u32_to_u8) \
    FROM_TO(i32, u16, u32_to_u16) \
    FROM_TO(i32, u64, i32_to_u64) \
    FROM_TO(i32, bool, u32_to_bool) \
    FROM_TO(i32, f32, i32_to_f32) \
    FROM_TO(i32, f64, i32_to_f64) \
    FROM_TO(i64, i8, u64_to_u8) \
    FROM_TO(i64, i16, u64_to_u16) \
    FROM_TO(i64, i32, u64_to_u32) \
    FROM_TO(i64, u8, u64_to_u8) \
    FROM_TO(i64, u16, u64_to_u16) \
    FROM_TO(i64, u32, u64_to_u32) \
    FROM_TO(i64, bool, u64_to_bool) \
    FROM_TO(i64, f32, i64_to_f32) \
    FROM_TO(i64, f64, i64_to_f64) \
    FROM_TO(u8, i16, u8_to_u16) \
    FROM_TO(u8, i32, u8_to_u32) \
    FROM_TO(u8, i64, u8_to_u64) \
    FROM_TO(u8, u16, u8_to_u16) \
    FROM_TO(u8, u32, u8_to_u32) \
    FROM_TO(u8, u64, u8_to_u64) \
    FROM_TO(u8, bool, u8_to_bool) \
    FROM_TO(u8, f32, u8_to_f32) \
    FROM_TO(u8, f64, u8_to_f64) \
    FROM_TO(u16, i8, u16_to_u8) \
    FROM_TO(u16, i32, u16_to_u32) \
    FROM_TO(u16, i64, u16_to_u64) \
    FROM_TO(u16, u8, u16_to_u8) \
    FROM_TO(u16, u32, u16_to_u32) \
    FROM_TO(u16, u64, u16_to_u64) \
    FROM_TO(u16, bool, u16_to_bool) \
    FROM_TO(u16, f32, u16_to_f32) \
    FROM_TO(u16, f64, u16_to_f64) \
    FROM_TO(u32, i8, u32_to_u8) \
    FROM_TO(u32, i16, u32_to_u16) \
    FROM_TO(u32, i64, u32_to_u64) \
    FROM_TO(u32, u8, u32_to_u8) \
    FROM_TO(u32, u16, u32_to_u16) \
    FROM_TO(u32, u64, u32_to_u64) \
    FROM_TO(u32, bool, u32_to_bool) \
    FROM_TO(u32, f32, u32_to_f32) \
    FROM_TO(u32, f64, u32_to_f64) \
    FROM_TO(u64, i8, u64_to_u8) \
    FROM_TO(u64, i16, u64_to_u16) \
    FROM_TO(u64, i32, u64_to_u32) \
    FROM_TO(u64, u8, u64_to_u8) \
    FROM_TO(u64, u16, u64_to_u16) \
    FROM_TO(u64, u32, u64_to_u32) \
    FROM_TO(u64, bool, u64_to_bool) \
    FROM_TO(u64, f32, u64_to_f32) \
    FROM_TO(u64, f64, u64_to_f64) \
    FROM_TO(bool, i8, bool_to_u8) \
    FROM_TO(bool, i16, bool_to_u16) \
    FROM_TO(bool, i32, bool_to_u32) \
    FROM_TO(bool, i64, bool_to_u64) \
    FROM_TO(bool, u8, bool_to_u8) \
    FROM_TO(bool, u16, bool_to_u16) \
    FROM_TO(bool, u32, bool_to_u32) \
    FROM_TO(bool, u64, bool_to_u64) \
    FROM_TO(bool, f32, bool_to_f32) \
    FROM_TO(bool, f64, bool_to_f64) \
    FROM_TO(f32, i8, f32_to_i8) \
    FROM_TO(f32, i16, f32_to_i16) \
    FROM_TO(f32, i32, f32_to_i32) \
    FROM_TO(f32, i64, f32_to_i64) \
    FROM_TO(f32, u8, f32_to_u8) \
    FROM_TO(f32, u16, f32_to_u16) \
    FROM_TO(f32, u32, f32_to_u32) \
    FROM_TO(f32, u64, f32_to_u64) \
    FROM_TO(f32, bool, f32_to_bool) \
    FROM_TO(f32, f64, f32_to_f64) \
    FROM_TO(f64, i8, f64_to_i8) \
    FROM_TO(f64, i16, f64_to_i16) \
    FROM_TO(f64, i32, f64_to_i32) \
    FROM_TO(f64, i64, f64_to_i64) \
    FROM_TO(f64, u8, f64_to_u8) \
    FROM_TO(f64, u16, f64_to_u16) \
    FROM_TO(f64, u32, f64_to_u32) \
    FROM_TO(f64, u64, f64_to_u64) \
    FROM_TO(f64, bool, f64_to_bool) \
    FROM_TO(f64, f32, f64_to_f32) \
    FROM_TO(f32, bf16, f32_to_bf16) \
    FROM_TO(bf16, f32, bf16_to_f32)
/* clang-format on */

#endif
