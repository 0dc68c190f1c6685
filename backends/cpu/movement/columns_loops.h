/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of columns.h in plain C, so that the compiler can vectorise them. Each instruction set
 * has a file that includes this once and defines COLUMNS, the name of the table. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_COLUMNS_LOOPS_H
#define KILN_BACKENDS_CPU_MOVEMENT_COLUMNS_LOOPS_H

#include "backends/cpu/movement/columns.h"

/* Elements that may lie at any address, and stand for any type. */
#define UNIT(bits) typedef uint##bits##_t Unit##bits __attribute__((aligned(1), may_alias));
UNIT(8)
UNIT(16)
UNIT(32)
UNIT(64)
#undef UNIT

/* One column after the other: @step is written once for each of them. */
#define EACH_2(step) step(0) step(1)
#define EACH_3(step) EACH_2(step) step(2)
#define EACH_4(step) EACH_3(step) step(3)

#define COLUMN_TO(k) T *restrict c##k = (T *)(void *)columns[k];
#define COLUMN_FROM(k) const T *restrict c##k = (const T *)(const void *)columns[k];
#define SPLIT_STEP(k) c##k[i] = rows[i * N + k];
#define JOIN_STEP(k) rows[i * N + k] = c##k[i];

#define LOOPS(bits, n)                                                                             \
    static void split##bits##_##n(char *const *columns, const char *from, int64_t count)           \
    {                                                                                              \
        typedef Unit##bits T;                                                                      \
        enum {                                                                                     \
            N = n                                                                                  \
        };                                                                                         \
        const T *restrict rows = (const T *)(const void *)from;                                    \
        EACH_##n(COLUMN_TO) for (int64_t i = 0; i < count; i++)                                    \
        {                                                                                          \
            EACH_##n(SPLIT_STEP)                                                                   \
        }                                                                                          \
    }                                                                                              \
    static void join##bits##_##n(char *to, const char *const *columns, int64_t count)              \
    {                                                                                              \
        typedef Unit##bits T;                                                                      \
        enum {                                                                                     \
            N = n                                                                                  \
        };                                                                                         \
        T *restrict rows = (T *)(void *)to;                                                        \
        EACH_##n(COLUMN_FROM) for (int64_t i = 0; i < count; i++)                                  \
        {                                                                                          \
            EACH_##n(JOIN_STEP)                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void pick##bits##_##n(char *to, const char *from, int64_t count)                        \
    {                                                                                              \
        typedef Unit##bits T;                                                                      \
        T *restrict column = (T *)(void *)to;                                                      \
        const T *restrict rows = (const T *)(const void *)from;                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            column[i] = rows[i * n];                                                               \
    }

#define LOOPS_OF(bits) LOOPS(bits, 2) LOOPS(bits, 3) LOOPS(bits, 4)
LOOPS_OF(8)
LOOPS_OF(16)
LOOPS_OF(32)
LOOPS_OF(64)

/* clang-format off */
#define ROW(op, bits) { [2] = op##bits##_2, [3] = op##bits##_3, [4] = op##bits##_4 }
#define ROWS(op) { ROW(op, 8), ROW(op, 16), ROW(op, 32), ROW(op, 64) }
/* clang-format on */

const KilnCpuColumns COLUMNS = { .split = ROWS(split), .join = ROWS(join), .pick = ROWS(pick) };

#endif
