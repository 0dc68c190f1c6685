/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of select.h in plain C without branches, so that the compiler can vectorise them. Each
 * instruction set has a file that includes this once, and defines SELECT, the name of the table. */
#ifndef KILN_BACKENDS_CPU_REDUCE_SELECT_LOOPS_H
#define KILN_BACKENDS_CPU_REDUCE_SELECT_LOOPS_H

#include "backends/cpu/reduce/select.h"

/* K: the key. U: the element's bits. Flips the sign of signed integers, all bits of negative
 * floats. */
#define INT_KEYS(id, T, U, K, flip)                                                                \
    static void keys_##id(void *keys, const void *x, int64_t n, KilnCpuKeyOrder order)             \
    {                                                                                              \
        K *to = keys;                                                                              \
        const U *from = x;                                                                         \
        const K reverse = order == KILN_CPU_KEYS_UP ? 0 : (K) ~(K)0;                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (K)(U)(from[i] ^ (flip)) ^ reverse;                                            \
    }
INT_KEYS(u8, uint8_t, uint8_t, uint32_t, 0)
INT_KEYS(u16, uint16_t, uint16_t, uint32_t, 0)
INT_KEYS(u32, uint32_t, uint32_t, uint32_t, 0)
INT_KEYS(u64, uint64_t, uint64_t, uint64_t, 0)
INT_KEYS(i8, int8_t, uint8_t, uint32_t, 0x80)
INT_KEYS(i16, int16_t, uint16_t, uint32_t, 0x8000)
INT_KEYS(i32, int32_t, uint32_t, uint32_t, UINT32_C(0x80000000))
INT_KEYS(i64, int64_t, uint64_t, uint64_t, UINT64_C(0x8000000000000000))
#undef INT_KEYS

/* Keys of numbers lie between those of NaN, which are 0 and all ones. */
#define FLOAT_KEYS(id, U, K, sign, infinity)                                                       \
    static void keys_##id(void *keys, const void *x, int64_t n, KilnCpuKeyOrder order)             \
    {                                                                                              \
        K *to = keys;                                                                              \
        const U *from = x;                                                                         \
        const K reverse = order == KILN_CPU_KEYS_UP ? 0 : (K) ~(K)0;                               \
        const K of_nan = order == KILN_CPU_KEYS_DOWN ? 0 : (K) ~(K)0;                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const K bits = from[i], size = bits & ((sign)-1);                                      \
            const K up = (bits & (sign)) ? (K)((sign)-size) : (K)((sign) + size);                  \
            to[i] = size > (infinity) ? of_nan : (K)(up ^ reverse);                                \
        }                                                                                          \
    }
FLOAT_KEYS(f16, uint16_t, uint32_t, UINT32_C(0x8000), UINT32_C(0x7c00))
FLOAT_KEYS(bf16, uint16_t, uint32_t, UINT32_C(0x8000), UINT32_C(0x7f80))
FLOAT_KEYS(f32, uint32_t, uint32_t, UINT32_C(0x80000000), UINT32_C(0x7f800000))
FLOAT_KEYS(f64, uint64_t, uint64_t, UINT64_C(0x8000000000000000), UINT64_C(0x7ff0000000000000))
#undef FLOAT_KEYS

#define KEY_LOOPS(bits, K)                                                                         \
    static uint64_t largest_##bits(const void *keys, int64_t n)                                    \
    {                                                                                              \
        const K *from = keys;                                                                      \
        K best = 0;                                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            best = from[i] > best ? from[i] : best;                                                \
        return best;                                                                               \
    }                                                                                              \
    static bool flag_larger_##bits(const void *keys, int64_t n, uint64_t than, uint8_t *flags)     \
    {                                                                                              \
        const K *from = keys, bound = (K)than;                                                     \
        uint8_t any = 0;                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const uint8_t larger = from[i] > bound;                                                \
            flags[i] = larger;                                                                     \
            any |= larger;                                                                         \
        }                                                                                          \
        return any;                                                                                \
    }                                                                                              \
    static void improve_##bits(void *best, int64_t *at, const void *keys, int64_t n, int64_t step, \
                               bool last)                                                          \
    {                                                                                              \
        K *most = best;                                                                            \
        const K *from = keys, less = last;                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const K key = from[i], old = most[i];                                                  \
            const bool better = (key > old) | ((key == old) & (less != 0));                        \
            most[i] = better ? key : old;                                                          \
            at[i] = better ? step : at[i];                                                         \
        }                                                                                          \
    }
KEY_LOOPS(32, uint32_t)
KEY_LOOPS(64, uint64_t)
#undef KEY_LOOPS

#define KEYS(id) [KILN_DTYPE_##id] = keys_##id
const KilnCpuSelectRows SELECT = {
    .keys = { KEYS(u8), KEYS(u16), KEYS(u32), KEYS(u64), KEYS(i8), KEYS(i16), KEYS(i32), KEYS(i64),
              KEYS(f16), KEYS(bf16), KEYS(f32), KEYS(f64) },
    .largest = { largest_32, largest_64 },
    .flag_larger = { flag_larger_32, flag_larger_64 },
    .improve = { improve_32, improve_64 },
};
#undef KEYS

#endif
