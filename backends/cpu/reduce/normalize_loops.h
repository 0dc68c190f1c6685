/* SPDX-License-Identifier: Apache-2.0 */
/* Loops for rows of softmax, normalisation and pooling, in the vocabulary of simd_ops_*.h. One file
 * per instruction set includes this. */
#ifndef KILN_BACKENDS_CPU_REDUCE_NORMALIZE_LOOPS_H
#define KILN_BACKENDS_CPU_REDUCE_NORMALIZE_LOOPS_H

#include "backends/cpu/reduce/few_rows.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/reduce/reduce_loops.h"
#include "backends/cpu/simd/vector_math.h"

#include "backends/cpu/reduce/narrow_softmax.h"

#include <math.h>
#include <string.h>

/* --- statistics and scaling --- */

static KilnCpuMoments
moments(const float *x, int64_t n, float shift)
{
    KilnCpuMoments total = { 0, 0 };
    const V center = V_SET1(shift);
    float centers[VW];
    V_STORE(centers, center);
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
            MASK mask = V_MASK(end - i); /* both are 0 behind the end */
            V a = V_SUB(V_LOAD_SOME(x + i, mask), V_LOAD_SOME(centers, mask));
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

static void
affine_columns(float *out, const float *x, int64_t n, const float *shift, const float *scale,
               const float *offset)
{
    int64_t i = 0;
    for (; i + VW <= n; i += VW) {
        V centred = V_SUB(V_LOAD(x + i), V_LOAD(shift + i));
        V_STORE(out + i, V_FMA(centred, V_LOAD(scale + i), V_LOAD(offset + i)));
    }
    if (i < n) {
        MASK mask = V_MASK(n - i);
        V centred = V_SUB(V_LOAD_SOME(x + i, mask), V_LOAD_SOME(shift + i, mask));
        V_STORE_SOME(out + i, mask,
                     V_FMA(centred, V_LOAD_SOME(scale + i, mask), V_LOAD_SOME(offset + i, mask)));
    }
}

/* --- softmax ---
 *
 * As with sums, the total of exponentials depends on their sequence only. The exponential at k is
 * added to lane k % 16. At the end of a block lanes are added in halves. */

/* A mask of bits sets the lanes behind the end to 0. */
INLINED V
exp_of_some(float *out, const float *x, int64_t n, V top)
{
    uint32_t bits[VW];
    float lanes[VW];
    memset(bits, 0xff, sizeof bits);
    memcpy(lanes, bits, sizeof lanes);
    MASK mask = V_MASK(n);
    V e = V_AND(vector_exp(V_SUB(V_LOAD_SOME(x, mask), top)), V_LOAD_SOME(lanes, mask));
    if (out)
        V_STORE_SOME(out, mask, e);
    return e;
}

INLINED double
exp_of_row(float *out, const float *x, int64_t n, float max)
{
    const V top = V_SET1(max);
    double total = 0;
    for (int64_t first = 0; first < n; first += SUM_BLOCK) {
        const int64_t end = first + SUM_BLOCK < n ? first + SUM_BLOCK : n;
        V lanes[LANES / VW];
        for (int v = 0; v < LANES / VW; v++)
            lanes[v] = V_SET1(0.0f);
        int64_t i = first;
        for (; i + LANES <= end; i += LANES) {
            for (int v = 0; v < LANES / VW; v++) {
                V e = vector_exp(V_SUB(V_LOAD(x + i + v * VW), top));
                lanes[v] = V_ADD(lanes[v], e);
                if (out)
                    V_STORE(out + i + v * VW, e);
            }
        }
        for (int v = 0; v < LANES / VW && i < end; v++, i += VW) {
            V e = exp_of_some(out ? out + i : NULL, x + i, end - i, top);
            lanes[v] = V_ADD(lanes[v], e);
        }
        total += (double)add_lanes(lanes);
    }
    return total;
}

static double
exp_row(float *out, const float *x, int64_t n, float max)
{
    return exp_of_row(out, x, n, max);
}

static float
log_exp_sum(const float *x, int64_t n, float max)
{
    float lanes[VW];
    V_STORE(lanes, vector_log(V_SET1((float)exp_of_row(NULL, x, n, max))));
    return lanes[0];
}

/* Returns the sums of exponentials of rows @first to @end, at most a block, of a vector of columns.
 * The exponentials are stored unless @logarithm. */
INLINED V
exp_of_columns(const KilnCpuSoftmaxColumns *c, int64_t first, int64_t end, int64_t i, V top,
               bool logarithm)
{
    const MASK mask = V_MASK(c->width - i);
    const float *x = c->x + first * c->stride + i;
    float *out = c->out + first * c->stride + i;
    const int64_t n = end - first, stride = c->stride;
    V lanes[LANES];
    for (int64_t k = 0; k < n; k++) {
        V e = vector_exp(V_SUB(V_LOAD_SOME(x + k * stride, mask), top));
        V *lane = &lanes[k & (LANES - 1)];
        *lane = k < LANES ? e : V_ADD(*lane, e);
        if (!logarithm)
            V_STORE_SOME(out + k * stride, mask, e);
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int k = 0; k < half && k + half < n; k++)
            lanes[k] = V_ADD(lanes[k], lanes[k + half]);
    }
    return lanes[0];
}

/* The logarithms of the sums of exponentials, or the inverses of these sums. */
INLINED V
exp_factor(const KilnCpuSoftmaxColumns *c, int64_t i, V top, bool logarithm)
{
    if (c->axis <= SUM_BLOCK) { /* float and double give the same inverse, rounded to float */
        V sum = exp_of_columns(c, 0, c->axis, i, top, logarithm);
        return logarithm ? vector_log(sum) : V_DIV(V_SET1(1.0f), sum);
    }
    double totals[VW] = { 0 };
    float lanes[VW];
    for (int64_t first = 0; first < c->axis; first += SUM_BLOCK) {
        const int64_t end = first + SUM_BLOCK < c->axis ? first + SUM_BLOCK : c->axis;
        V_STORE(lanes, exp_of_columns(c, first, end, i, top, logarithm));
        for (int v = 0; v < VW; v++)
            totals[v] += (double)lanes[v];
    }
    for (int v = 0; v < VW; v++)
        lanes[v] = (float)(logarithm ? totals[v] : 1 / totals[v]);
    return logarithm ? vector_log(V_LOAD(lanes)) : V_LOAD(lanes);
}

/* One vector of columns. */
INLINED void
softmax_vector(const KilnCpuSoftmaxColumns *c, int64_t i, bool logarithm)
{
    const MASK mask = V_MASK(c->width - i);
    const float *x = c->x + i;
    float *out = c->out + i;
    const int64_t n = c->axis, stride = c->stride;
    V top = V_SET1(-INFINITY);
    for (int64_t k = 0; k < n; k++)
        top = V_MAX(top, V_LOAD_SOME(x + k * stride, mask));
    const V factor = exp_factor(c, i, top, logarithm);
    for (int64_t k = 0; k < n; k++) {
        V y = V_LOAD_SOME((logarithm ? x : out) + k * stride, mask);
        y = logarithm ? V_SUB(V_SUB(y, top), factor) : V_MUL(y, factor);
        V_STORE_SOME(out + k * stride, mask, y);
    }
}

static void
softmax_columns(const KilnCpuSoftmaxColumns *c)
{
    for (int64_t i = 0; c->logarithm && i < c->width; i += VW)
        softmax_vector(c, i, true);
    for (int64_t i = 0; !c->logarithm && i < c->width; i += VW)
        softmax_vector(c, i, false);
}

/* --- windows --- */

INLINED V
both(bool average, V y, V x)
{
    return average ? V_ADD(y, x) : better(false, y, x);
}

/* How windows are reduced. These are constants, so that each way gets loops of its own. */
typedef struct {
    bool average;
    bool one_row, one_step; /* a stride of 1 */
    int neighbours; /* taps of windows of stride 2 that share their loads; 0: other windows */
} WindowWay;

/* Reduces all rows of a vector of columns, the first at @x, @stride apart. */
INLINED V
column(const KilnCpuWindows *w, const float *x, int64_t stride, WindowWay f)
{
    V y = V_LOAD_EVERY(x, stride);
    for (int64_t r = 1; !f.one_row && r < w->rows; r++)
        y = both(f.average, y, V_LOAD_EVERY(x + r * w->pitch, stride));
    return y;
}

INLINED V
window(const KilnCpuWindows *w, const float *x, WindowWay f)
{
    if (f.neighbours == 0) {
        const int64_t stride = f.one_step ? 1 : w->stride;
        V y = column(w, x, stride, f);
        for (int64_t k = 1; k < w->taps; k++)
            y = both(f.average, y, column(w, x + k * w->dilation, stride, f));
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
line_of_windows(const KilnCpuWindows *w, const float *x, float *out, WindowWay f)
{
    for (int64_t first = 0; first < w->n; first += VW) {
        const int64_t last = w->n > VW ? w->n - VW : 0, q = first < last ? first : last;
        MASK mask = V_MASK(w->n - q);
        V y = window(w, x + q * w->stride, f);
        if (f.average)
            y = V_DIV(y, V_MUL(V_LOAD_SOME(w->counts + q, mask), V_SET1(w->count)));
        V_STORE_SOME(out + q, mask, y);
    }
}

INLINED void
windows_of(const KilnCpuWindows *w, WindowWay f)
{
    for (int64_t i = 0; i < w->lines; i++)
        line_of_windows(w, w->x + i * w->line_in, w->out + i * w->line_out, f);
}

INLINED void
windows(const KilnCpuWindows *w, bool average)
{
    bool neighbours = w->stride == 2 && w->dilation == 1;
    if (neighbours && w->taps == 2)
        windows_of(w, (WindowWay){ .average = average, .neighbours = 2 });
    else if (neighbours && w->taps == 3)
        windows_of(w, (WindowWay){ .average = average, .neighbours = 3 });
    else if (w->rows == 1)
        windows_of(w, (WindowWay){ .average = average, .one_row = true });
    else if (w->stride == 1)
        windows_of(w, (WindowWay){ .average = average, .one_step = true });
    else
        windows_of(w, (WindowWay){ .average = average });
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
    .reduce = { add_row, absolute_row, square_row, max_row, min_row },
    .reduce_part = { add_part, absolute_part, square_part, max_part, min_part },
    .reduce_value = { add_value, absolute_value, square_value, max_value, min_value },
    .reduce_columns = { add_columns, absolute_columns, square_columns, max_columns, min_columns },
    .moments = moments,
    .affine = affine,
    .affine_columns = affine_columns,
    .row_dots = row_dots,
    .row_sums = row_sums,
    .exp_row = exp_row,
    .log_exp_sum = log_exp_sum,
    .softmax_columns = softmax_columns,
    .softmax_narrow = softmax_narrow,
    .vector = VW,
    .max_windows = max_windows,
    .average_windows = average_windows,
    .response = response,
};

#endif
