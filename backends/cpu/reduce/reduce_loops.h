/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of rows and columns, in the vocabulary of simd_ops_*.h. The reduction is a constant
 * argument of functions that are always inlined, so each one gets loops of its own. One file per
 * instruction set includes this. */
#ifndef KILN_BACKENDS_CPU_REDUCE_REDUCE_LOOPS_H
#define KILN_BACKENDS_CPU_REDUCE_REDUCE_LOOPS_H

#include "backends/cpu/reduce/reduce.h"

#include <math.h>
#include <stdbool.h>

#define INLINED static inline __attribute__((always_inline))

enum {
    SUM_BLOCK = KILN_CPU_REDUCE_BLOCK,
    GROUP = KILN_CPU_REDUCE_GROUP,
    LANES = GROUP / 4,
};

/* --- sums ---
 *
 * A sum depends only on the sequence of its terms, not on their place in memory or on the length of
 * a vector. In a group of 64 terms, lane k of 16 takes
 *
 *     (x[k] + x[k + 16]) + (x[k + 32] + x[k + 48])
 *
 * and adds it to its sum so far. At the end of a block lanes are added in halves: k and k + 8, k
 * and k + 4, ... Missing terms are zeros. Their sign cannot matter, because sums begin at 0. A
 * vector has several lanes along rows, one along columns. */

INLINED V
term(KilnCpuReduction by, V x)
{
    return by == KILN_CPU_REDUCE_ABSOLUTE ? V_ABS(x)
           : by == KILN_CPU_REDUCE_SQUARE ? V_MUL(x, x)
                                          : x;
}

/* The sums of the lanes in the vector at @x. The group has @n terms from @x on. */
INLINED V
lanes_of_row(KilnCpuReduction by, const float *x, int64_t n)
{
    V a = term(by, V_LOAD_SOME(x, V_MASK(n)));
    if (n <= LANES)
        return a;
    a = V_ADD(a, term(by, V_LOAD_SOME(x + LANES, V_MASK(n - LANES))));
    if (n <= 2 * LANES)
        return a;
    V b = term(by, V_LOAD_SOME(x + 2 * LANES, V_MASK(n - 2 * LANES)));
    if (n <= 3 * LANES)
        return V_ADD(a, b);
    b = V_ADD(b, term(by, V_LOAD_SOME(x + 3 * LANES, V_MASK(n - 3 * LANES))));
    return V_ADD(a, b);
}

/* Adds up to a block of terms: whole groups, except for the last group of the block. */
INLINED void
add_terms(KilnCpuReduction by, V *lanes, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        for (int v = 0; v < LANES / VW; v++) {
            const float *at = x + i + v * VW;
            V a = V_ADD(term(by, V_LOAD(at)), term(by, V_LOAD(at + LANES)));
            V b = V_ADD(term(by, V_LOAD(at + 2 * LANES)), term(by, V_LOAD(at + 3 * LANES)));
            lanes[v] = V_ADD(lanes[v], V_ADD(a, b));
        }
    }
    for (int v = 0; v < LANES / VW && i + v * VW < n; v++)
        lanes[v] = V_ADD(lanes[v], lanes_of_row(by, x + i + v * VW, n - i - v * VW));
}

INLINED float
add_lanes(V *lanes)
{
    for (int half = LANES / VW / 2; half > 0; half /= 2) {
        for (int v = 0; v < half; v++)
            lanes[v] = V_ADD(lanes[v], lanes[v + half]);
    }
    return V_SUM(lanes[0]);
}

INLINED double
sum_row(KilnCpuReduction by, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        V lanes[LANES / VW];
        for (int v = 0; v < LANES / VW; v++)
            lanes[v] = V_SET1(0.0f);
        add_terms(by, lanes, x + i, n - i < SUM_BLOCK ? n - i : SUM_BLOCK);
        sum += (double)add_lanes(lanes);
    }
    return sum;
}

INLINED void
sum_part(KilnCpuReduction by, KilnCpuLanes *part, const float *x, int64_t n)
{
    V lanes[LANES / VW];
    for (int v = 0; v < LANES / VW; v++)
        lanes[v] = part->begun ? V_LOAD(part->lanes + v * VW) : V_SET1(0.0f);
    add_terms(by, lanes, x, n);
    for (int v = 0; v < LANES / VW; v++)
        V_STORE(part->lanes + v * VW, lanes[v]);
    part->begun = true;
}

INLINED float
sum_of_parts(const KilnCpuLanes *part)
{
    V lanes[LANES / VW];
    for (int v = 0; v < LANES / VW; v++)
        lanes[v] = V_LOAD(part->lanes + v * VW);
    return add_lanes(lanes);
}

INLINED const float *
row_of(const KilnCpuColumns *c, int64_t k)
{
    return c->even ? c->rows[0] + k * c->stride : c->rows[k];
}

/* A vector of columns in the last group. */
typedef struct {
    const KilnCpuColumns *c;
    int64_t i; /* the first of them */
    MASK mask;
    int64_t live; /* lanes that may differ from 0 */
} Columns;

INLINED V
load_lane(const KilnCpuColumns *c, int k, int64_t i)
{
    return c->first ? V_SET1(0.0f) : V_LOAD(c->lanes + k * KILN_CPU_REDUCE_COLUMNS + i);
}

INLINED V
term_of_row(KilnCpuReduction by, const Columns *at, int k)
{
    return term(by, V_LOAD_SOME(at->c->rows[k] + at->i, at->mask));
}

/* Lane @k after its group is added. */
INLINED V
lane(KilnCpuReduction by, const Columns *at, int k)
{
    const int64_t n = at->c->n;
    V before = load_lane(at->c, k, at->i);
    if (k >= n)
        return before;
    V a = term_of_row(by, at, k);
    if (k + LANES < n)
        a = V_ADD(a, term_of_row(by, at, k + LANES));
    if (k + 2 * LANES < n) {
        V b = term_of_row(by, at, k + 2 * LANES);
        if (k + 3 * LANES < n)
            b = V_ADD(b, term_of_row(by, at, k + 3 * LANES));
        a = V_ADD(a, b);
    }
    return V_ADD(before, a);
}

/* The sum of lanes @k and @k + 8; below, of every fourth and of every second lane from @k on. */
INLINED V
two_lanes(KilnCpuReduction by, const Columns *at, int k)
{
    V sum = lane(by, at, k);
    return k + 8 < at->live ? V_ADD(sum, lane(by, at, k + 8)) : sum;
}

INLINED V
four_lanes(KilnCpuReduction by, const Columns *at, int k)
{
    V sum = two_lanes(by, at, k);
    return k + 4 < at->live ? V_ADD(sum, two_lanes(by, at, k + 4)) : sum;
}

INLINED V
eight_lanes(KilnCpuReduction by, const Columns *at, int k)
{
    V sum = four_lanes(by, at, k);
    return k + 2 < at->live ? V_ADD(sum, four_lanes(by, at, k + 2)) : sum;
}

/* Lane @k of all columns takes its terms from a whole group. */
INLINED void
add_to_lane(KilnCpuReduction by, const KilnCpuColumns *c, int k, int64_t width)
{
    const float *first = row_of(c, k), *second = row_of(c, k + LANES);
    const float *third = row_of(c, k + 2 * LANES), *fourth = row_of(c, k + 3 * LANES);
    for (int64_t i = 0; i < width; i += VW) {
        MASK mask = V_MASK(c->width - i);
        V a =
            V_ADD(term(by, V_LOAD_SOME(first + i, mask)), term(by, V_LOAD_SOME(second + i, mask)));
        V b =
            V_ADD(term(by, V_LOAD_SOME(third + i, mask)), term(by, V_LOAD_SOME(fourth + i, mask)));
        V_STORE(c->lanes + k * KILN_CPU_REDUCE_COLUMNS + i, V_ADD(load_lane(c, k, i), V_ADD(a, b)));
    }
}

/* Lane by lane: few rows are read at a time. One vector of columns needs no loop. */
INLINED void
add_group(KilnCpuReduction by, const KilnCpuColumns *c)
{
    if (c->width <= VW) {
        for (int k = 0; k < LANES; k++)
            add_to_lane(by, c, k, VW);
        return;
    }
    for (int k = 0; k < LANES; k++)
        add_to_lane(by, c, k, c->width);
}

INLINED void
sum_columns(KilnCpuReduction by, float *sums, const KilnCpuColumns *c)
{
    if (!c->last) {
        add_group(by, c);
        return;
    }
    const int64_t live = c->first && c->n < LANES ? c->n : LANES;
    for (int64_t i = 0; i < c->width; i += VW) {
        const Columns at = { c, i, V_MASK(c->width - i), live };
        V sum = eight_lanes(by, &at, 0);
        V_STORE(sums + i, live > 1 ? V_ADD(sum, eight_lanes(by, &at, 1)) : sum);
    }
}

/* --- extremes --- */

/* If either is a NaN, so is the result. */
INLINED V
better(bool minimum, V best, V x)
{
    V extreme = minimum ? V_MIN(x, best) : V_MAX(x, best);
    return V_SELECT(V_NAN(x), x, extreme);
}

/* An extreme that does not depend on the order of elements. -0 is less than 0. NaNs are kept apart;
 * the best of a lane with a NaN may be anything. */
typedef struct {
    V best, nan;
} Extreme;

INLINED Extreme
no_extreme(bool minimum)
{
    return (Extreme){ V_SET1(minimum ? INFINITY : -INFINITY), V_SET1(0.0f) };
}

/* V_MIN and V_MAX return the second of two equal elements, which may be 0 and -0. */
INLINED Extreme
extreme_with(bool minimum, Extreme e, V x)
{
    V best = minimum ? V_OR(V_MIN(x, e.best), V_MIN(e.best, x))
                     : V_AND(V_MAX(x, e.best), V_MAX(e.best, x));
    return (Extreme){ best, V_SELECT(V_NAN(x), x, e.nan) };
}

INLINED Extreme
extreme_of_both(bool minimum, Extreme a, Extreme b)
{
    Extreme e = extreme_with(minimum, a, b.best);
    e.nan = V_SELECT(V_NAN(b.nan), b.nan, a.nan);
    return e;
}

INLINED float
better_of(bool minimum, float best, float x)
{
    bool better =
        minimum ? x < best || (x == best && signbit(x)) : x > best || (x == best && !signbit(x));
    return better || isnan(x) ? x : best;
}

INLINED float
extreme_lane(bool minimum, Extreme e)
{
    if (V_ANY(V_NAN(e.nan)))
        return NAN;
    float best = minimum ? -V_LARGEST(V_NEG(e.best)) : V_LARGEST(e.best);
    if (best != 0)
        return best;
    float lanes[VW];
    V_STORE(lanes, e.best);
    for (int k = 0; k < VW; k++)
        best = better_of(minimum, best, lanes[k]);
    return best;
}

/* The last vector may overlap the one before: an element may count twice. */
INLINED Extreme
extreme_of_row(bool minimum, Extreme a, const float *x, int64_t n)
{
    Extreme b = no_extreme(minimum);
    int64_t i = 0;
    if (n < VW) {
        float lanes[VW];
        V_STORE(lanes, b.best);
        for (; i < n; i++)
            lanes[i] = x[i];
        return extreme_with(minimum, a, V_LOAD(lanes));
    }
    for (; i + 2 * VW <= n; i += 2 * VW) {
        a = extreme_with(minimum, a, V_LOAD(x + i));
        b = extreme_with(minimum, b, V_LOAD(x + i + VW));
    }
    if (i + VW <= n)
        a = extreme_with(minimum, a, V_LOAD(x + i));
    b = extreme_with(minimum, b, V_LOAD(x + n - VW));
    return extreme_of_both(minimum, a, b);
}

INLINED double
extreme_row(bool minimum, const float *x, int64_t n)
{
    float best = minimum ? INFINITY : -INFINITY;
    if (n >= VW)
        return (double)extreme_lane(minimum, extreme_of_row(minimum, no_extreme(minimum), x, n));
    for (int64_t i = 0; i < n; i++)
        best = better_of(minimum, best, x[i]);
    return (double)best;
}

INLINED Extreme
load_extreme(bool minimum, bool begun, const float *best, const float *nan)
{
    return begun ? (Extreme){ V_LOAD(best), V_LOAD(nan) } : no_extreme(minimum);
}

INLINED void
extreme_part(bool minimum, KilnCpuLanes *part, const float *x, int64_t n)
{
    Extreme e = load_extreme(minimum, part->begun, part->lanes, part->lanes + LANES);
    e = extreme_of_row(minimum, e, x, n);
    V_STORE(part->lanes, e.best);
    V_STORE(part->lanes + LANES, e.nan);
    part->begun = true;
}

INLINED float
extreme_of_parts(bool minimum, const KilnCpuLanes *part)
{
    return extreme_lane(minimum, load_extreme(minimum, true, part->lanes, part->lanes + LANES));
}

INLINED void
extreme_columns(bool minimum, float *extremes, const KilnCpuColumns *c)
{
    for (int64_t i = 0; i < c->width; i += VW) {
        MASK mask = V_MASK(c->width - i);
        float *best = c->lanes + i, *nan = c->lanes + KILN_CPU_REDUCE_COLUMNS + i;
        Extreme e = load_extreme(minimum, !c->first, best, nan);
        for (int64_t r = 0; r < c->n; r++)
            e = extreme_with(minimum, e, V_LOAD_SOME(row_of(c, r) + i, mask));
        V_STORE(best, e.best);
        V_STORE(nan, e.nan);
        if (c->last)
            V_STORE(extremes + i, V_SELECT(V_NAN(e.nan), e.nan, e.best));
    }
}

/* --- the reductions --- */

#define REDUCTION(name, row, part, value, columns, ...)                                            \
    static double name##_row(const float *x, int64_t n)                                            \
    {                                                                                              \
        return row(__VA_ARGS__, x, n);                                                             \
    }                                                                                              \
    static void name##_part(KilnCpuLanes *lanes, const float *x, int64_t n)                        \
    {                                                                                              \
        part(__VA_ARGS__, lanes, x, n);                                                            \
    }                                                                                              \
    static float name##_value(const KilnCpuLanes *lanes)                                           \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    static void name##_columns(float *result, const KilnCpuColumns *c)                             \
    {                                                                                              \
        columns(__VA_ARGS__, result, c);                                                           \
    }
#define SUM_REDUCTION(name, by)                                                                    \
    REDUCTION(name, sum_row, sum_part, sum_of_parts(lanes), sum_columns, by)
SUM_REDUCTION(add, KILN_CPU_REDUCE_SUM)
SUM_REDUCTION(absolute, KILN_CPU_REDUCE_ABSOLUTE)
SUM_REDUCTION(square, KILN_CPU_REDUCE_SQUARE)
#undef SUM_REDUCTION

#define EXTREME_REDUCTION(name, minimum)                                                           \
    REDUCTION(name, extreme_row, extreme_part, extreme_of_parts(minimum, lanes), extreme_columns,  \
              minimum)
EXTREME_REDUCTION(max, false)
EXTREME_REDUCTION(min, true)
#undef EXTREME_REDUCTION
#undef REDUCTION

#endif
