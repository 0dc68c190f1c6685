/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax along columns of which at most KILN_CPU_NARROW lie side by side. Attention whose heads
 * are mixed has such columns behind its last product. One file per instruction set includes this.
 *
 * Rows follow each other without a gap, so vectors go over several of them. LANES rows of @width
 * floats are a period: whole vectors. Float j of it belongs to column j % width and lane j / width,
 * as one that is read column by column. So sums have the same bits. */
#ifndef KILN_BACKENDS_CPU_REDUCE_NARROW_SOFTMAX_H
#define KILN_BACKENDS_CPU_REDUCE_NARROW_SOFTMAX_H

#include "backends/cpu/reduce/reduce.h"

#include <math.h>
#include <stdint.h>

enum {
    PERIOD = LANES * KILN_CPU_NARROW /* floats, at most */
};

/* The first row of each column, @width floats, is repeated for the other lanes. */
static inline void
repeat_row(float *period, int64_t width)
{
    for (int64_t j = width; j < LANES * width; j++)
        period[j] = period[j - width];
}

/* The greatest of each column. The first row of the result counts. */
INLINED void
narrow_max(const KilnCpuSoftmaxColumns *c, float *lanes)
{
    const int64_t width = c->width, period = LANES * width, n = c->axis * width;
    for (int64_t v = 0; v < period; v += VW)
        V_STORE(lanes + v, V_SET1(-INFINITY));
    int64_t first = 0;
    for (; first + period <= n; first += period) {
        for (int64_t v = 0; v < period; v += VW)
            V_STORE(lanes + v, V_MAX(V_LOAD(lanes + v), V_LOAD(c->x + first + v)));
    }
    for (int64_t v = 0; first + v < n; v += VW) {
        MASK mask = V_MASK(n - first - v);
        V most = V_MAX(V_LOAD(lanes + v), V_LOAD_SOME(c->x + first + v, mask));
        V_STORE_SOME(lanes + v, mask, most);
    }
    for (int64_t j = width; j < period; j++)
        lanes[j % width] = lanes[j] > lanes[j % width] ? lanes[j] : lanes[j % width];
}

/* One vector of exponentials, which are added to @lane. */
INLINED void
narrow_exp(float *out, const float *x, const float *top, float *lane, MASK mask)
{
    V e = vector_exp(V_SUB(V_LOAD_SOME(x, mask), V_LOAD(top)));
    V_STORE_SOME(lane, mask, V_ADD(V_LOAD(lane), e));
    if (out)
        V_STORE_SOME(out, mask, e);
}

/* The sums of exponentials of at most a block of rows, in the first row of @lanes. @out: NULL, or
 * where the exponentials go. */
INLINED void
narrow_sums(float *out, const float *x, int64_t rows, int64_t width, const float *top, float *lanes)
{
    const int64_t period = LANES * width, n = rows * width;
    const MASK all = V_MASK(VW);
    for (int64_t v = 0; v < period; v += VW)
        V_STORE(lanes + v, V_SET1(0.0f));
    int64_t first = 0;
    for (; first + period <= n; first += period) {
        for (int64_t v = 0; v < period; v += VW)
            narrow_exp(out ? out + first + v : NULL, x + first + v, top + v, lanes + v, all);
    }
    for (int64_t v = 0; first + v < n; v += VW)
        narrow_exp(out ? out + first + v : NULL, x + first + v, top + v, lanes + v,
                   V_MASK(n - first - v));
    for (int64_t half = LANES / 2 * width; half >= width; half /= 2) {
        for (int64_t j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    }
}

/* The inverses of the sums of exponentials, or their logarithms, for all lanes. */
INLINED void
narrow_factor(const KilnCpuSoftmaxColumns *c, const float *top, float *factor)
{
    const int64_t width = c->width;
    double totals[KILN_CPU_NARROW] = { 0 };
    for (int64_t first = 0; first < c->axis; first += SUM_BLOCK) {
        const int64_t rows = first + SUM_BLOCK < c->axis ? SUM_BLOCK : c->axis - first;
        narrow_sums(c->logarithm ? NULL : c->out + first * width, c->x + first * width, rows, width,
                    top, factor);
        for (int64_t i = 0; i < width; i++)
            totals[i] += (double)factor[i];
    }
    for (int64_t i = 0; i < width; i++)
        factor[i] = (float)(c->logarithm ? totals[i] : 1 / totals[i]);
    repeat_row(factor, width);
    for (int64_t v = 0; c->logarithm && v < LANES * width; v += VW)
        V_STORE(factor + v, vector_log(V_LOAD(factor + v)));
}

static void
softmax_narrow(const KilnCpuSoftmaxColumns *c)
{
    float top[PERIOD], factor[PERIOD];
    const int64_t period = LANES * c->width, n = c->axis * c->width;
    narrow_max(c, top);
    repeat_row(top, c->width);
    narrow_factor(c, top, factor);
    for (int64_t first = 0; first < n; first += period) {
        for (int64_t v = 0; v < period && first + v < n; v += VW) {
            const MASK mask = V_MASK(n - first - v);
            V y = V_LOAD_SOME((c->logarithm ? c->x : c->out) + first + v, mask);
            V f = V_LOAD(factor + v);
            y = c->logarithm ? V_SUB(V_SUB(y, V_LOAD(top + v)), f) : V_MUL(y, f);
            V_STORE_SOME(c->out + first + v, mask, y);
        }
    }
}

#endif
