/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of rows and columns, from the vocabulary of simd_ops_*.h. What is folded is a constant
 * argument of functions that are always inlined: each fold gets loops of its own. Included by one
 * file per instruction set.
 */
#pragma once

#include "backends/cpu/reduce.h"

#include <math.h>
#include <stdbool.h>

#define INLINED static inline __attribute__((always_inline))

enum {
    SUM_BLOCK = KILN_CPU_FOLD_BLOCK,
    COLUMN_BLOCK = 64, /* the same for rows that are added up along columns */
};

/* --- sums --- */

INLINED V
term(KilnCpuFold fold, V x)
{
    return fold == KILN_CPU_FOLD_ABSOLUTE ? V_ABS(x)
           : fold == KILN_CPU_FOLD_SQUARE ? V_MUL(x, x)
                                          : x;
}

/* Up to SUM_BLOCK floats in four vectors of partial sums. */
INLINED float
sum_block(KilnCpuFold fold, const float *x, int64_t n)
{
    V a = V_SET1(0.0f), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * VW <= n; i += 4 * VW) {
        a = V_ADD(a, term(fold, V_LOAD(x + i)));
        b = V_ADD(b, term(fold, V_LOAD(x + i + VW)));
        c = V_ADD(c, term(fold, V_LOAD(x + i + 2 * VW)));
        d = V_ADD(d, term(fold, V_LOAD(x + i + 3 * VW)));
    }
    for (; i + VW <= n; i += VW)
        a = V_ADD(a, term(fold, V_LOAD(x + i)));
    if (i < n)
        b = V_ADD(b, term(fold, V_LOAD_SOME(x + i, V_MASK(n - i))));
    V sum = V_ADD(V_ADD(a, b), V_ADD(c, d));
    return V_SUM(sum);
}

INLINED double
sum_row(KilnCpuFold fold, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK)
        sum += (double)sum_block(fold, x + i, n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
    return sum;
}

/* Adds the lanes of one block of rows to the columns from @i on. */
INLINED void
sum_columns(KilnCpuFold fold, double *acc, const KilnCpuColumns *c)
{
    for (int64_t i = 0; i < c->width; i += VW) {
        MASK mask = V_MASK(c->width - i);
        for (int64_t first = 0; first < c->rows; first += COLUMN_BLOCK) {
            int64_t end = first + COLUMN_BLOCK < c->rows ? first + COLUMN_BLOCK : c->rows;
            V sum = V_SET1(0.0f);
            for (int64_t r = first; r < end; r++)
                sum = V_ADD(sum, term(fold, V_LOAD_SOME(c->x + r * c->stride + i, mask)));
            float lanes[VW];
            V_STORE(lanes, sum);
            for (int k = 0; k < VW && i + k < c->width; k++)
                acc[i + k] += (double)lanes[k];
        }
    }
}

/* --- extremes --- */

/* A NaN of either stays. */
INLINED V
better(bool minimum, V best, V x)
{
    V extreme = minimum ? V_MIN(x, best) : V_MAX(x, best);
    return V_SELECT(V_NAN(x), x, extreme);
}

INLINED float
better_of(bool minimum, float best, float x)
{
    return isnan(x) || (minimum ? x < best : x > best) ? x : best;
}

INLINED float
best_lane(bool minimum, V x)
{
    if (V_ANY(V_NAN(x)))
        return NAN;
    return minimum ? -V_LARGEST(V_NEG(x)) : V_LARGEST(x);
}

/* The last vector may overlap the one before: an element may count twice. */
INLINED double
extreme_row(bool minimum, const float *x, int64_t n)
{
    float best = minimum ? INFINITY : -INFINITY;
    if (n < VW) {
        for (int64_t i = 0; i < n; i++)
            best = better_of(minimum, best, x[i]);
        return (double)best;
    }
    V a = V_SET1(best), b = a;
    int64_t i = 0;
    for (; i + 2 * VW <= n; i += 2 * VW) {
        a = better(minimum, a, V_LOAD(x + i));
        b = better(minimum, b, V_LOAD(x + i + VW));
    }
    if (i + VW <= n)
        a = better(minimum, a, V_LOAD(x + i));
    b = better(minimum, b, V_LOAD(x + n - VW));
    a = better(minimum, a, b);
    return (double)best_lane(minimum, a);
}

INLINED void
extreme_columns(bool minimum, double *acc, const KilnCpuColumns *c)
{
    for (int64_t i = 0; i < c->width; i += VW) {
        MASK mask = V_MASK(c->width - i);
        float lanes[VW] = { 0 };
        for (int k = 0; k < VW && i + k < c->width; k++)
            lanes[k] = (float)acc[i + k];
        V best = V_LOAD(lanes);
        for (int64_t r = 0; r < c->rows; r++)
            best = better(minimum, best, V_LOAD_SOME(c->x + r * c->stride + i, mask));
        V_STORE(lanes, best);
        for (int k = 0; k < VW && i + k < c->width; k++)
            acc[i + k] = (double)lanes[k];
    }
}

/* --- the folds --- */

#define SUM_FOLD(name, fold)                                                                       \
    static double name##_row(const float *x, int64_t n)                                            \
    {                                                                                              \
        return sum_row(fold, x, n);                                                                \
    }                                                                                              \
    static void name##_columns(double *acc, const KilnCpuColumns *c)                               \
    {                                                                                              \
        sum_columns(fold, acc, c);                                                                 \
    }
SUM_FOLD(add, KILN_CPU_FOLD_SUM)
SUM_FOLD(absolute, KILN_CPU_FOLD_ABSOLUTE)
SUM_FOLD(square, KILN_CPU_FOLD_SQUARE)
#undef SUM_FOLD

#define EXTREME_FOLD(name, minimum)                                                                \
    static double name##_row(const float *x, int64_t n)                                            \
    {                                                                                              \
        return extreme_row(minimum, x, n);                                                         \
    }                                                                                              \
    static void name##_columns(double *acc, const KilnCpuColumns *c)                               \
    {                                                                                              \
        extreme_columns(minimum, acc, c);                                                          \
    }
EXTREME_FOLD(max, false)
EXTREME_FOLD(min, true)
#undef EXTREME_FOLD
