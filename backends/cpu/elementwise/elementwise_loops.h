/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the loops of elementwise.h, with the formulas of elementwise_ops.h. A loop does
 * whole vectors, then a masked one. One file per instruction set includes it. That file includes
 * its simd header first and defines ROWS, the name of the table. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_LOOPS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_LOOPS_H

#include "backends/cpu/elementwise/elementwise_ops.h"
#include "backends/cpu/elementwise/wide_functions.h"

#include <math.h>
#include <string.h>

enum {
    ANGLES = 256
};

/* Formulas are long chains. Four vectors are loaded before the first result is stored, so that the
   compiler can interleave them. */
#define UNARY(id)                                                                                  \
    static void unary_##id(float *out, const float *x, int64_t n, const KilnCpuParams *p)          \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + 4 * VW <= n; i += 4 * VW) {                                                     \
            V a = op_##id(V_LOAD(x + i), p), b = op_##id(V_LOAD(x + i + VW), p);                   \
            V c = op_##id(V_LOAD(x + i + 2 * VW), p), d = op_##id(V_LOAD(x + i + 3 * VW), p);      \
            V_STORE(out + i, a);                                                                   \
            V_STORE(out + i + VW, b);                                                              \
            V_STORE(out + i + 2 * VW, c);                                                          \
            V_STORE(out + i + 3 * VW, d);                                                          \
        }                                                                                          \
        for (; i + VW <= n; i += VW)                                                               \
            V_STORE(out + i, op_##id(V_LOAD(x + i), p));                                           \
        if (i < n)                                                                                 \
            V_STORE_SOME(out + i, V_MASK(n - i), op_##id(V_LOAD_SOME(x + i, V_MASK(n - i)), p));   \
    }

/* Two vectors at once, because the numbers of four have no room in the registers. */
#define LONG(id)                                                                                   \
    static void unary_##id(float *out, const float *x, int64_t n, const KilnCpuParams *p)          \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + 2 * VW <= n; i += 2 * VW) {                                                     \
            V a = op_##id(V_LOAD(x + i), p), b = op_##id(V_LOAD(x + i + VW), p);                   \
            V_STORE(out + i, a);                                                                   \
            V_STORE(out + i + VW, b);                                                              \
        }                                                                                          \
        for (; i < n; i += VW)                                                                     \
            V_STORE_SOME(out + i, V_MASK(n - i), op_##id(V_LOAD_SOME(x + i, V_MASK(n - i)), p));   \
    }

/* The compiler makes vectors of these. Results wait in a block, because they may lie where @x does.
 */
#define WIDE(id)                                                                                   \
    static void unary_##id(float *out, const float *x, int64_t n, const KilnCpuParams *p)          \
    {                                                                                              \
        float block[ANGLES];                                                                       \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i += ANGLES) {                                                  \
            const int64_t length = n - i < ANGLES ? n - i : ANGLES;                                \
            for (int64_t k = 0; k < length; k++)                                                   \
                block[k] = (float)wide_##id((double)x[i + k]);                                     \
            memcpy(out + i, block, (size_t)length * sizeof block[0]);                              \
        }                                                                                          \
    }
/* Angles of very many turns are left to the library. */
#define ANGLE(id)                                                                                  \
    static void unary_##id(float *out, const float *x, int64_t n, const KilnCpuParams *p)          \
    {                                                                                              \
        float block[ANGLES];                                                                       \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i += ANGLES) {                                                  \
            const int64_t length = n - i < ANGLES ? n - i : ANGLES;                                \
            int far = 0;                                                                           \
            for (int64_t k = 0; k < length; k++)                                                   \
                far |= __builtin_fabsf(x[i + k]) > wide_most_turns;                                \
            for (int64_t k = 0; k < length; k++)                                                   \
                block[k] = (float)wide_##id((double)x[i + k]);                                     \
            for (int64_t k = 0; far && k < length; k++) {                                          \
                if (__builtin_fabsf(x[i + k]) > wide_most_turns)                                   \
                    block[k] = (float)id((double)x[i + k]);                                        \
            }                                                                                      \
            memcpy(out + i, block, (size_t)length * sizeof block[0]);                              \
        }                                                                                          \
    }

/* One loop per way to load operands. FIRST and SECOND load at an offset, *_SOME with a mask. */
#define EACH(p, i) V_LOAD((p) + (i))
#define EACH_SOME(p, i) V_LOAD_SOME((p) + (i), V_MASK(n - (i)))
#define FIXED(p, i) V_SET1((p)[0])
#define BINARY_LOOP(name, id, FIRST, FIRST_SOME, SECOND, SECOND_SOME)                              \
    static void name##_##id(float *out, const float *a, const float *b, int64_t n)                 \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + VW <= n; i += VW)                                                               \
            V_STORE(out + i, op_##id(FIRST(a, i), SECOND(b, i)));                                  \
        if (i < n)                                                                                 \
            V_STORE_SOME(out + i, V_MASK(n - i), op_##id(FIRST_SOME(a, i), SECOND_SOME(b, i)));    \
    }
#define COMPARE_LOOP(name, id, FIRST, FIRST_SOME, SECOND, SECOND_SOME)                             \
    static void name##_##id(uint8_t *out, const float *a, const float *b, int64_t n)               \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + VW <= n; i += VW)                                                               \
            V_STORE_BOOL(out + i, op_##id(FIRST(a, i), SECOND(b, i)));                             \
        if (i < n)                                                                                 \
            V_STORE_BOOL_SOME(out + i, n - i, op_##id(FIRST_SOME(a, i), SECOND_SOME(b, i)));       \
    }
#define BINARY(id)                                                                                 \
    BINARY_LOOP(each, id, EACH, EACH_SOME, EACH, EACH_SOME)                                        \
    BINARY_LOOP(second_fixed, id, EACH, EACH_SOME, FIXED, FIXED)                                   \
    BINARY_LOOP(first_fixed, id, FIXED, FIXED, EACH, EACH_SOME)
#define COMPARE(id)                                                                                \
    COMPARE_LOOP(each, id, EACH, EACH_SOME, EACH, EACH_SOME)                                       \
    COMPARE_LOOP(second_fixed, id, EACH, EACH_SOME, FIXED, FIXED)                                  \
    COMPARE_LOOP(first_fixed, id, FIXED, FIXED, EACH, EACH_SOME)
#include "backends/cpu/elementwise/elementwise.def"

#define SELECT_LOOP(name, YES, YES_SOME, NO, NO_SOME)                                              \
    static void name(float *out, const uint8_t *condition, const float *yes, const float *no,      \
                     int64_t n)                                                                    \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + VW <= n; i += VW)                                                               \
            V_STORE(out + i, V_SELECT(V_LOAD_BOOL(condition + i), YES(yes, i), NO(no, i)));        \
        if (i < n)                                                                                 \
            V_STORE_SOME(out + i, V_MASK(n - i),                                                   \
                         V_SELECT(V_LOAD_BOOL_SOME(condition + i, n - i), YES_SOME(yes, i),        \
                                  NO_SOME(no, i)));                                                \
    }
SELECT_LOOP(select_each, EACH, EACH_SOME, EACH, EACH_SOME)
SELECT_LOOP(select_no_fixed, EACH, EACH_SOME, FIXED, FIXED)
SELECT_LOOP(select_yes_fixed, FIXED, FIXED, EACH, EACH_SOME)
SELECT_LOOP(select_both_fixed, FIXED, FIXED, FIXED, FIXED)

const KilnCpuRows ROWS = {
    .select = { { select_each, select_no_fixed }, { select_yes_fixed, select_both_fixed } },
#define UNARY(id) .unary[KILN_CPU_UNARY_##id] = unary_##id,
#define BINARY(id)                                                                                 \
    .binary[KILN_CPU_BINARY_##id] = { each_##id, second_fixed_##id, first_fixed_##id },
#define COMPARE(id)                                                                                \
    .compare[KILN_CPU_COMPARE_##id] = { each_##id, second_fixed_##id, first_fixed_##id },
#include "backends/cpu/elementwise/elementwise.def"
};

#endif
