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

#include "backends/cpu/elementwise/cast_loops.h"

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
    RESCALE(rescale_i8_to_##id, T, low, high, int8_t)                                              \
    RESCALE(rescale_u8_to_##id, T, low, high, uint8_t)                                             \
    RESCALE(rescale_i16_to_##id, T, low, high, int16_t)                                            \
    RESCALE(rescale_u16_to_##id, T, low, high, uint16_t)
QUANTIZED(i8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZED(u8, uint8_t, 0, UINT8_MAX)
QUANTIZED(i16, int16_t, INT16_MIN, INT16_MAX)
QUANTIZED(u16, uint16_t, 0, UINT16_MAX)

/* --- pairs --- */

/* Each of the three ways to broadcast has a loop of its own. */
#define PAIR_LOOP(name, T, U, expression)                                                          \
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
PAIR_LOOP(logic_and, uint8_t, uint8_t, (x != 0) & (y != 0))
PAIR_LOOP(logic_equal, uint8_t, uint8_t, (x != 0) == (y != 0))
PAIR_LOOP(logic_or, uint8_t, uint8_t, (x | y) != 0)
PAIR_LOOP(logic_xor, uint8_t, uint8_t, (x != 0) ^ (y != 0))
PAIR_LOOP(logic_not, uint8_t, uint8_t, (x == 0) | (y == 0)) /* called with one operand twice */

#include "backends/cpu/elementwise/mod_loops.h"
#include "backends/cpu/elementwise/number_loops.h"

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

#define QUANT(id)                                                                                  \
    .quantize[KILN_DTYPE_##id] = quantize_##id, .dequantize[KILN_DTYPE_##id] = dequantize_##id,    \
    .rescale[KILN_DTYPE_i8][KILN_DTYPE_##id] = rescale_i8_to_##id,                                 \
    .rescale[KILN_DTYPE_u8][KILN_DTYPE_##id] = rescale_u8_to_##id,                                 \
    .rescale[KILN_DTYPE_i16][KILN_DTYPE_##id] = rescale_i16_to_##id,                               \
    .rescale[KILN_DTYPE_u16][KILN_DTYPE_##id] = rescale_u16_to_##id
#define LOGIC(id) [KILN_CPU_LOGIC_##id] = logic_##id,

const KilnCpuTypedRows TYPED = {
    CAST_ENTRIES.cast[KILN_DTYPE_f32][KILN_DTYPE_f16] = F32_TO_F16,
    .cast[KILN_DTYPE_f16][KILN_DTYPE_f32] = F16_TO_F32,
    QUANT(i8),
    QUANT(u8),
    QUANT(i16),
    QUANT(u16),
#define PAIR(id, CLASS, expression) CLASS(PAIR_ENTRY, PAIR_ENTRY, id, expression)
#define REAL_PAIR(id, expression) PAIR_ENTRY(id, f64)
#define REAL_TEST(id, expression) PAIR_ENTRY(id, f64)
#define ONE(id, CLASS, expression) CLASS(ONE_ENTRY, ONE_ENTRY, id, expression)
#define REAL_ONE(id, expression) ONE_ENTRY(id, f64)
#include "backends/cpu/elementwise/numbers.def"
    INTS(CLIP_ENTRY, CLIP_ENTRY, clip, ) CLIP_ENTRY(clip, f64)
        MOD_ENTRIES.bits = { bits_16, bits_32, bits_64 },
    .logic = { KILN_CPU_LOGIC_OPS(LOGIC) },
    .choose = { choose_8, choose_16, choose_32, choose_64 },
};

#endif
