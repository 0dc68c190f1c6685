/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of cumulative.h in C that compilers make vectors of, and in intrinsics where AVX-512
 * widens f32. Lines side by side take each step as vectors. Rows take their steps one by one. A few
 * rows do so at a time, so that no addition waits for the one before. Each instruction set has a
 * file that includes this once and defines CUMULATIVES, the name of the table. */
#ifndef KILN_BACKENDS_CPU_REDUCE_CUMULATIVE_LOOPS_H
#define KILN_BACKENDS_CPU_REDUCE_CUMULATIVE_LOOPS_H

#include "backends/cpu/reduce/cumulative.h"
#include "backends/cpu/simd/unrolled.h"

#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum {
    LINES = KILN_CPU_CUMULATIVE_LINES,
    ROWS = KILN_CPU_CUMULATIVE_ROWS,
    LANES = 8, /* of columns: the widest vector of doubles */
};

/* One step of @n columns. The result may lie where the data does: an element is read before it is
 * written. */
#if defined(__AVX512F__)
/* The loop of the other branch in vectors, because GCC 12 takes apart what widens f32. All columns
 * are whole vectors. */
#define WIDENED_f32(x) ((Numbers)_mm512_cvtps_pd((__m256)(x)))
#define WIDENED_f64(x) (x)
#define WIDENED_32(x) (x)
#define WIDENED_64(x) (x)
#define STEP(op, id, T, A)                                                                         \
    static void step_##op##_##id(T *to, const T *from, A *all, int64_t n, bool exclusive)          \
    {                                                                                              \
        typedef T Elements __attribute__((vector_size(LANES * sizeof(T))));                        \
        typedef A Numbers __attribute__((vector_size(LANES * sizeof(A))));                         \
        for (int64_t i = 0; i < n; i += LANES) {                                                   \
            Elements x;                                                                            \
            Numbers before, now;                                                                   \
            memcpy(&x, from + i, sizeof x);                                                        \
            memcpy(&before, all + i, sizeof before);                                               \
            now = op(before, WIDENED_##id(x));                                                     \
            memcpy(all + i, &now, sizeof now);                                                     \
            x = __builtin_convertvector(exclusive ? before : now, Elements);                       \
            memcpy(to + i, &x, sizeof x);                                                          \
        }                                                                                          \
    }
#else
#define STEP(op, id, T, A)                                                                         \
    static void step_##op##_##id(T *to, const T *from, A *all, int64_t n, bool exclusive)          \
    {                                                                                              \
        EACH_BY_ITSELF                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const A before = all[i], now = op(before, (A)from[i]);                                 \
            all[i] = now;                                                                          \
            to[i] = (T)(exclusive ? before : now);                                                 \
        }                                                                                          \
    }
#endif

/* A step takes whole vectors of columns, and those that are left in a copy. */
#define CUMULATIVE(op, first, id, T, A)                                                            \
    STEP(op, id, T, A)                                                                             \
    static void columns_##op##_##id(const KilnCpuLines *lines)                                     \
    {                                                                                              \
        const int64_t rest = lines->n % LANES, n = lines->n - rest;                                \
        A all[LINES + LANES];                                                                      \
        for (int64_t i = 0; i < n + LANES; i++)                                                    \
            all[i] = first;                                                                        \
        for (int64_t k = 0; k < lines->extent; k++) {                                              \
            const T *from = (const T *)lines->from + k * lines->step;                              \
            T *to = (T *)lines->to + k * lines->step, some[LANES] = { 0 };                         \
            step_##op##_##id(to, from, all, n, lines->exclusive);                                  \
            memcpy(some, from + n, (size_t)rest * sizeof(T));                                      \
            if (rest > 0)                                                                          \
                step_##op##_##id(some, some, all + n, LANES, lines->exclusive);                    \
            memcpy(to + n, some, (size_t)rest * sizeof(T));                                        \
        }                                                                                          \
    }                                                                                              \
    static inline void rows_of_##op##_##id(const KilnCpuLines *lines, int64_t begin, int rows)     \
    {                                                                                              \
        A all[ROWS];                                                                               \
        for (int r = 0; r < rows; r++)                                                             \
            all[r] = first;                                                                        \
        for (int64_t k = 0; k < lines->extent; k++) {                                              \
            for (int r = 0; r < rows; r++) {                                                       \
                const int64_t at = (begin + r) * lines->line + k * lines->step;                    \
                const A before = all[r], now = op(before, (A)((const T *)lines->from)[at]);        \
                all[r] = now;                                                                      \
                ((T *)lines->to)[at] = (T)(lines->exclusive ? before : now);                       \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void rows_##op##_##id(const KilnCpuLines *lines)                                        \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + ROWS <= lines->n; i += ROWS)                                                    \
            rows_of_##op##_##id(lines, i, ROWS);                                                   \
        for (; i < lines->n; i++)                                                                  \
            rows_of_##op##_##id(lines, i, 1);                                                      \
    }

#define sum(a, x) ((a) + (x))
#define product(a, x) ((a) * (x))
#define BOTH(id, T, A) CUMULATIVE(sum, 0, id, T, A) CUMULATIVE(product, 1, id, T, A)
BOTH(f32, float, double)
BOTH(f64, double, double)
BOTH(32, uint32_t, uint32_t)
BOTH(64, uint64_t, uint64_t)

/* clang-format off */
#define LOOPS(kind, op) { kind##_##op##_f32, kind##_##op##_f64, kind##_##op##_32, kind##_##op##_64 }
/* clang-format on */

const KilnCpuCumulatives CUMULATIVES = {
    .columns = { LOOPS(columns, sum), LOOPS(columns, product) },
    .rows = { LOOPS(rows, sum), LOOPS(rows, product) },
};

#endif
