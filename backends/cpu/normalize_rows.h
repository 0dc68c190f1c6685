/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of softmax, normalisation and pooling, from the vocabulary of simd_ops_*.h. Included by one
 * file per instruction set, behind reduce_rows.h.
 */
#pragma once

#include "backends/cpu/reduce_rows.h"
#include "backends/cpu/vector_math.h"

/* --- statistics and scaling --- */

static KilnCpuMoments
moments(const float *x, int64_t n, float shift)
{
    KilnCpuMoments total = { 0, 0 };
    const V center = V_SET1(shift);
    for (int64_t first = 0; first < n; first += SUM_BLOCK) {
        int64_t end = first + SUM_BLOCK < n ? first + SUM_BLOCK : n, i = first;
        V sum = V_SET1(0.0f), squares = sum, sum2 = sum, squares2 = sum;
        for (; i + 2 * VW <= end; i += 2 * VW) {
            V a = V_SUB(V_LOAD(x + i), center), b = V_SUB(V_LOAD(x + i + VW), center);
            sum = V_ADD(sum, a);
            sum2 = V_ADD(sum2, b);
            squares = V_FMA(a, a, squares);
            squares2 = V_FMA(b, b, squares2);
        }
        for (; i < end; i += VW) {
            /* Lanes behind the end become 0 by way of a row of zeros. */
            float lanes[VW] = { 0 };
            MASK mask = V_MASK(end - i);
            V_STORE_SOME(lanes, mask, V_SUB(V_LOAD_SOME(x + i, mask), center));
            V a = V_LOAD(lanes);
            sum = V_ADD(sum, a);
            squares = V_FMA(a, a, squares);
        }
        sum = V_ADD(sum, sum2);
        squares = V_ADD(squares, squares2);
        total.sum += (double)V_SUM(sum);
        total.squares += (double)V_SUM(squares);
    }
    return total;
}

INLINED void
affine_row(float *out, const float *x, int64_t n, const KilnCpuAffine *a, bool scaled)
{
    const V shift = V_SET1(a->shift), scale = V_SET1(a->scale), offset = V_SET1(a->offset);
    const float *scales = a->scales, *offsets = a->offsets;
    int64_t i = 0;
    for (; i + VW <= n; i += VW) {
        V y = V_FMA(V_SUB(V_LOAD(x + i), shift), scale, offset);
        if (scaled)
            y = V_FMA(y, V_LOAD(scales + i), offsets ? V_LOAD(offsets + i) : V_SET1(0.0f));
        V_STORE(out + i, y);
    }
    if (i < n) {
        MASK mask = V_MASK(n - i);
        V y = V_FMA(V_SUB(V_LOAD_SOME(x + i, mask), shift), scale, offset);
        if (scaled)
            y = V_FMA(y, V_LOAD_SOME(scales + i, mask),
                      offsets ? V_LOAD_SOME(offsets + i, mask) : V_SET1(0.0f));
        V_STORE_SOME(out + i, mask, y);
    }
}

static void
affine(float *out, const float *x, int64_t n, const KilnCpuAffine *a)
{
    if (a->scales)
        affine_row(out, x, n, a, true);
    else
        affine_row(out, x, n, a, false);
}

/* --- softmax --- */

INLINED double
exp_of_row(float *out, const float *x, int64_t n, float max)
{
    const V top = V_SET1(max);
    double total = 0;
    for (int64_t first = 0; first < n; first += SUM_BLOCK) {
        int64_t end = first + SUM_BLOCK < n ? first + SUM_BLOCK : n, i = first;
        V sum = V_SET1(0.0f);
        for (; i + VW <= end; i += VW) {
            V e = vector_exp(V_SUB(V_LOAD(x + i), top));
            sum = V_ADD(sum, e);
            if (out)
                V_STORE(out + i, e);
        }
        if (i < end) {
            float lanes[VW] = { 0 };
            MASK mask = V_MASK(end - i);
            V_STORE_SOME(lanes, mask, vector_exp(V_SUB(V_LOAD_SOME(x + i, mask), top)));
            V e = V_LOAD(lanes);
            sum = V_ADD(sum, e);
            if (out)
                V_STORE_SOME(out + i, mask, e);
        }
        total += (double)V_SUM(sum);
    }
    return total;
}

static double
exp_row(float *out, const float *x, int64_t n, float max)
{
    return exp_of_row(out, x, n, max);
}

static double
exp_sum(const float *x, int64_t n, float max)
{
    return exp_of_row(NULL, x, n, max);
}

/* One vector of columns. Sums stay in float: an axis of n adds up to about n rounding errors, of
   terms up to 1. */
INLINED void
softmax_vector(const KilnCpuSoftmaxColumns *c, int64_t i, MASK mask)
{
    const float *x = c->x + i;
    float *out = c->out + i;
    V top = V_SET1(-INFINITY), sum = V_SET1(0.0f);
    for (int64_t k = 0; k < c->axis; k++)
        top = V_MAX(top, V_LOAD_SOME(x + k * c->stride, mask));
    for (int64_t k = 0; k < c->axis; k++) {
        V e = vector_exp(V_SUB(V_LOAD_SOME(x + k * c->stride, mask), top));
        sum = V_ADD(sum, e);
        if (!c->logarithm)
            V_STORE_SOME(out + k * c->stride, mask, e);
    }
    if (c->logarithm) {
        V total = vector_log(sum);
        for (int64_t k = 0; k < c->axis; k++) {
            V below = V_SUB(V_LOAD_SOME(x + k * c->stride, mask), top);
            V_STORE_SOME(out + k * c->stride, mask, V_SUB(below, total));
        }
        return;
    }
    for (int64_t k = 0; k < c->axis; k++) {
        V e = V_LOAD_SOME(out + k * c->stride, mask);
        V_STORE_SOME(out + k * c->stride, mask, V_DIV(e, sum));
    }
}

static void
softmax_columns(const KilnCpuSoftmaxColumns *c)
{
    for (int64_t i = 0; i < c->width; i += VW)
        softmax_vector(c, i, V_MASK(c->width - i));
}

/* --- windows --- */

INLINED V
both(bool average, V y, V x)
{
    return average ? V_ADD(y, x) : better(false, y, x);
}

/* How windows are folded: constants, so that each way gets loops of its own. */
typedef struct {
    bool average;
    bool one_row;
    int neighbours; /* taps of windows of stride 2 that share what they read; 0: other windows */
} Folding;

/* All rows from @x on, @stride apart. */
INLINED V
column(const KilnCpuWindows *w, const float *x, int64_t stride, Folding f)
{
    V y = V_LOAD_EVERY(x, stride);
    for (int64_t r = 1; !f.one_row && r < w->rows; r++)
        y = both(f.average, y, V_LOAD_EVERY(x + r * w->pitch, stride));
    return y;
}

INLINED V
window(const KilnCpuWindows *w, const float *x, Folding f)
{
    if (f.neighbours == 0) {
        V y = column(w, x, w->stride, f);
        for (int64_t k = 1; k < w->taps; k++)
            y = both(f.average, y, column(w, x + k * w->dilation, w->stride, f));
        return y;
    }
    V a = column(w, x, 1, f), b = column(w, x + VW, 1, f);
    V y = both(f.average, V_EVENS(a, b), V_ODDS(a, b));
    if (f.neighbours == 2)
        return y;
    V after = column(w, x + 2, 1, f), last = column(w, x + 2 + VW, 1, f);
    return both(f.average, y, V_EVENS(after, last));
}

/* The last vector overlaps the one before, if there is one. */
INLINED void
windows_of(const KilnCpuWindows *w, Folding f)
{
    for (int64_t first = 0; first < w->n; first += VW) {
        const int64_t last = w->n > VW ? w->n - VW : 0, q = first < last ? first : last;
        MASK mask = V_MASK(w->n - q);
        V y = window(w, w->x + q * w->stride, f);
        if (f.average)
            y = V_DIV(y, V_MUL(V_LOAD_SOME(w->counts + q, mask), V_SET1(w->count)));
        V_STORE_SOME(w->out + q, mask, y);
    }
}

INLINED void
windows(const KilnCpuWindows *w, bool average)
{
    bool neighbours = w->stride == 2 && w->dilation == 1;
    if (neighbours && w->taps == 2)
        windows_of(w, (Folding){ average, false, 2 });
    else if (neighbours && w->taps == 3)
        windows_of(w, (Folding){ average, false, 3 });
    else if (w->rows == 1)
        windows_of(w, (Folding){ average, true, 0 });
    else
        windows_of(w, (Folding){ average, false, 0 });
}

static void
max_windows(const KilnCpuWindows *w)
{
    windows(w, false);
}

static void
average_windows(const KilnCpuWindows *w)
{
    windows(w, true);
}

/* --- local response --- */

static void
response(const KilnCpuResponse *r)
{
    for (int64_t i = 0; i < r->n; i += VW) {
        MASK mask = V_MASK(r->n - i);
        V squares = V_SET1(0.0f);
        for (int64_t k = 0; k < r->channels; k++) {
            V x = V_LOAD_SOME(r->first + k * r->stride + i, mask);
            squares = V_FMA(x, x, squares);
        }
        V base = V_FMA(V_SET1(r->scale), squares, V_SET1(r->bias));
        V power = vector_exp(V_MUL(V_SET1(-r->beta), vector_log(base)));
        V_STORE_SOME(r->out + i, mask, V_MUL(V_LOAD_SOME(r->x + i, mask), power));
    }
}

const KilnCpuReducers REDUCERS = {
    .fold = { add_row, absolute_row, square_row, max_row, min_row },
    .fold_part = { add_part, absolute_part, square_part, max_part, min_part },
    .fold_value = { add_value, absolute_value, square_value, max_value, min_value },
    .fold_columns = { add_columns, absolute_columns, square_columns, max_columns, min_columns },
    .moments = moments,
    .affine = affine,
    .exp_row = exp_row,
    .exp_sum = exp_sum,
    .softmax_columns = softmax_columns,
    .vector = VW,
    .max_windows = max_windows,
    .average_windows = average_windows,
    .response = response,
};
