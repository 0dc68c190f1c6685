/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of typed.h in plain C without branches, so that the compiler can vectorise them. Each
 * instruction set has a file that includes this once. That file defines TYPED, the name of the
 * table, and its own loops F32_TO_F16 and F16_TO_F32. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_TYPED_LOOPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_TYPED_LOOPS_H

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/quantized_steps.h"
#include "backends/cpu/elementwise/typed.h"
#include "graph/kiln-types.h"

#include <string.h>

/* --- casts --- */

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

/* The upper 16 bits, rounded half to even. A NaN stays a NaN. */
static inline uint16_t
to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((x != x ? bits | 0x400000 : rounded) >> 16);
}

static inline float
from_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

CAST(f32_to_i64, int64_t, float, to_i64(x))
CAST(f32_to_i32, int32_t, float, to_i32(x))
CAST(f32_to_i8, int8_t, float, to_small(x, INT8_MIN, INT8_MAX))
CAST(f32_to_u8, uint8_t, float, to_small(x, 0, UINT8_MAX))
CAST(f32_to_bool, uint8_t, float, x != 0)
CAST(f32_to_bf16, uint16_t, float, to_bf16(x))
CAST(i64_to_f32, float, int64_t, x)
CAST(i32_to_f32, float, int32_t, x)
CAST(i8_to_f32, float, int8_t, x)
CAST(u8_to_f32, float, uint8_t, x)
CAST(bool_to_f32, float, uint8_t, x != 0)
CAST(bf16_to_f32, float, uint16_t, from_bf16(x))
CAST(i64_to_i32, int32_t, int64_t, x)
CAST(i32_to_i64, int64_t, int32_t, x)
CAST(bool_to_i64, int64_t, uint8_t, x != 0)
CAST(bool_to_i32, int32_t, uint8_t, x != 0)
CAST(i64_to_bool, uint8_t, int64_t, x != 0)
CAST(i32_to_bool, uint8_t, int32_t, x != 0)

/* --- quantization --- */

#define QUANTIZE(id, T, low, high)                                                                 \
    static void quantize_##id(void *out, const void *in, int64_t n, float scale, int32_t zero)     \
    {                                                                                              \
        T *to = out;                                                                               \
        const float *from = in;                                                                    \
        const float least = (float)((low)-zero), most = (float)((high)-zero);                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (T)quantized(from[i] / scale, zero, least, most);                              \
    }                                                                                              \
    static void dequantize_##id(void *out, const void *in, int64_t n, float scale, int32_t zero)   \
    {                                                                                              \
        float *to = out;                                                                           \
        const T *from = in;                                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (float)(from[i] - zero) * scale;                                               \
    }
#define RESCALE(name, T, low, high, U)                                                             \
    static void name(void *out, const void *in, int64_t n, float factor, int32_t from_zero,        \
                     int32_t zero)                                                                 \
    {                                                                                              \
        T *to = out;                                                                               \
        const U *from = in;                                                                        \
        const float least = (float)((low)-zero), most = (float)((high)-zero);                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (T)quantized((float)(from[i] - from_zero) * factor, zero, least, most);        \
    }
#define QUANTIZED(id, T, low, high)                                                                \
    QUANTIZE(id, T, low, high)                                                                     \
    RESCALE(i8_to_##id, T, low, high, int8_t)                                                      \
    RESCALE(u8_to_##id, T, low, high, uint8_t)                                                     \
    RESCALE(i16_to_##id, T, low, high, int16_t)                                                    \
    RESCALE(u16_to_##id, T, low, high, uint16_t)
QUANTIZED(i8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZED(u8, uint8_t, 0, UINT8_MAX)
QUANTIZED(i16, int16_t, INT16_MIN, INT16_MAX)
QUANTIZED(u16, uint16_t, 0, UINT16_MAX)

/* --- pairs --- */

/* Each of the three ways to broadcast has a loop of its own. */
#define PAIR(name, T, U, expression)                                                               \
    static void name(void *out, const void *a, const void *b, int64_t n, KilnCpuFixed fixed)       \
    {                                                                                              \
        T *to = out;                                                                               \
        const U *first = a, *second = b;                                                           \
        if (fixed == KILN_CPU_NONE_FIXED) {                                                        \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const U x = first[i], y = second[i];                                               \
                to[i] = (T)(expression);                                                           \
            }                                                                                      \
        } else if (fixed == KILN_CPU_SECOND_FIXED) {                                               \
            const U y = second[0];                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const U x = first[i];                                                              \
                to[i] = (T)(expression);                                                           \
            }                                                                                      \
        } else {                                                                                   \
            const U x = first[0];                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const U y = second[i];                                                             \
                to[i] = (T)(expression);                                                           \
            }                                                                                      \
        }                                                                                          \
    }
/* Arithmetic is unsigned, so that it wraps. Comparisons are signed. */
#define ARITHMETIC(name, expression)                                                               \
    PAIR(name##_32, uint32_t, uint32_t, expression)                                                \
    PAIR(name##_64, uint64_t, uint64_t, expression)
#define COMPARISON(name, expression)                                                               \
    PAIR(name##_32, uint8_t, int32_t, expression)                                                  \
    PAIR(name##_64, uint8_t, int64_t, expression)
ARITHMETIC(add, x + y)
ARITHMETIC(sub, x - y)
ARITHMETIC(mul, x *y)
COMPARISON(equal, x == y)
COMPARISON(greater, x > y)
COMPARISON(greater_or_equal, x >= y)
COMPARISON(less, x < y)
COMPARISON(less_or_equal, x <= y)
PAIR(logic_and, uint8_t, uint8_t, (x != 0) & (y != 0))
PAIR(logic_or, uint8_t, uint8_t, (x | y) != 0)
PAIR(logic_xor, uint8_t, uint8_t, (x != 0) ^ (y != 0))
PAIR(logic_not, uint8_t, uint8_t, (x == 0) | (y == 0)) /* called with one operand twice */

/* --- choices --- */

/* Reads both choices: no branch in a loop. The first loop is for operands that all advance. */
#define CHOICE(name, T)                                                                            \
    static void name(void *out, const uint8_t *condition, const void *yes, const void *no,         \
                     int64_t n, KilnCpuSteps steps)                                                \
    {                                                                                              \
        T *to = out;                                                                               \
        const T *first = yes, *second = no;                                                        \
        if (steps.condition && steps.yes && steps.no) {                                            \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T x = first[i], y = second[i];                                               \
                to[i] = condition[i] ? x : y;                                                      \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T x = first[i * steps.yes], y = second[i * steps.no];                            \
            to[i] = condition[i * steps.condition] ? x : y;                                        \
        }                                                                                          \
    }
CHOICE(choose_8, uint8_t)
CHOICE(choose_16, uint16_t)
CHOICE(choose_32, uint32_t)
CHOICE(choose_64, uint64_t)

/* --- the table --- */

#define FROM_TO(a, b) .cast[KILN_DTYPE_##a][KILN_DTYPE_##b] = a##_to_##b
#define QUANT(id)                                                                                  \
    .quantize[KILN_DTYPE_##id] = quantize_##id, .dequantize[KILN_DTYPE_##id] = dequantize_##id,    \
    .rescale[KILN_DTYPE_i8][KILN_DTYPE_##id] = i8_to_##id,                                         \
    .rescale[KILN_DTYPE_u8][KILN_DTYPE_##id] = u8_to_##id,                                         \
    .rescale[KILN_DTYPE_i16][KILN_DTYPE_##id] = i16_to_##id,                                       \
    .rescale[KILN_DTYPE_u16][KILN_DTYPE_##id] = u16_to_##id
#define INTEGER(id) [KILN_CPU_INTEGER_##id] = { id##_32, id##_64 },
#define LOGIC(id) [KILN_CPU_LOGIC_##id] = logic_##id,

const KilnCpuTypedRows TYPED = {
    FROM_TO(f32, i64),
    FROM_TO(f32, i32),
    FROM_TO(f32, i8),
    FROM_TO(f32, u8),
    FROM_TO(f32, bool),
    FROM_TO(f32, bf16),
    FROM_TO(i64, f32),
    FROM_TO(i32, f32),
    FROM_TO(i8, f32),
    FROM_TO(u8, f32),
    FROM_TO(bool, f32),
    FROM_TO(bf16, f32),
    FROM_TO(i64, i32),
    FROM_TO(i32, i64),
    FROM_TO(bool, i64),
    FROM_TO(bool, i32),
    FROM_TO(i64, bool),
    FROM_TO(i32, bool),
    .cast[KILN_DTYPE_f32][KILN_DTYPE_f16] = F32_TO_F16,
    .cast[KILN_DTYPE_f16][KILN_DTYPE_f32] = F16_TO_F32,
    QUANT(i8),
    QUANT(u8),
    QUANT(i16),
    QUANT(u16),
    .integer = { KILN_CPU_INTEGER_OPS(INTEGER) },
    .logic = { KILN_CPU_LOGIC_OPS(LOGIC) },
    .choose = { choose_8, choose_16, choose_32, choose_64 },
};

#endif
