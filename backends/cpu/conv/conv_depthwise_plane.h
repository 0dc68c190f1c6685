/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the depthwise plane kernel. It defines depthwise_plane(). The file that includes
 * it must include one of the simd headers first.
 *
 * The general loop sums four vectors of outputs at a time, of one row or of several. Four sums hide
 * the latency of the multiply-add, and each weight is broadcast once for all four. Loads limit its
 * speed. 3 × 3 kernels of stride 1 or 2 therefore sum four rows below each other: a loaded input
 * row serves up to three of them. Both loops add the taps in their order. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_DEPTHWISE_PLANE_H
#define KILN_BACKENDS_CPU_CONV_CONV_DEPTHWISE_PLANE_H

#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/simd/unrolled.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum {
    STRIPS = 4,
    BLOCK_ROWS = 4
};

/* Up to four vectors of outputs. */
typedef struct {
    const float *in[STRIPS];
    int64_t at[STRIPS], lanes[STRIPS];
    int n;
} Strips;

/* A constant @full lets the compiler drop the masks. */
ALWAYS_INLINE V
load(const float *p, MASK mask, const bool full)
{
    return full ? V_LOAD(p) : V_LOAD_SOME(p, mask);
}

ALWAYS_INLINE void
store_sum(const KilnDepthwisePlane *p, int64_t at, V x, MASK mask, const bool full)
{
    if (p->residual)
        x = V_ADD(x, load(p->residual + at, mask, full));
    x = V_MIN(V_SET1(p->hi), V_MAX(V_SET1(p->lo), x));
    if (full)
        V_STORE(p->out + at, x);
    else
        V_STORE_SOME(p->out + at, mask, x);
}

ALWAYS_INLINE void
sum_strips(const KilnDepthwisePlane *p, const Strips *s, const bool full)
{
    MASK m0 = V_MASK(s->lanes[0]), m1 = V_MASK(s->lanes[1]);
    MASK m2 = V_MASK(s->lanes[2]), m3 = V_MASK(s->lanes[3]);
    V a0 = V_SET1(p->bias), a1 = a0, a2 = a0, a3 = a0;
    const float *i0 = s->in[0], *i1 = s->in[1], *i2 = s->in[2], *i3 = s->in[3];
    const float *weights = p->weights;
    const int64_t *offsets = p->offsets;
    for (int64_t t = 0, taps = p->taps; t < taps; t++) {
        V w = V_SET1(weights[t]);
        int64_t o = offsets[t];
        a0 = V_FMA(w, load(i0 + o, m0, full), a0);
        a1 = V_FMA(w, load(i1 + o, m1, full), a1);
        a2 = V_FMA(w, load(i2 + o, m2, full), a2);
        a3 = V_FMA(w, load(i3 + o, m3, full), a3);
    }
    store_sum(p, s->at[0], a0, m0, full);
    if (s->n > 1)
        store_sum(p, s->at[1], a1, m1, full);
    if (s->n > 2)
        store_sum(p, s->at[2], a2, m2, full);
    if (s->n > 3)
        store_sum(p, s->at[3], a3, m3, full);
}

static void
flush_strips(const KilnDepthwisePlane *p, Strips *s)
{
    bool full = s->n == STRIPS;
    for (int i = 0; i < s->n; i++)
        full = full && s->lanes[i] == VW;
    for (int i = s->n; i < STRIPS; i++) {
        s->in[i] = s->in[0];
        s->lanes[i] = s->lanes[0];
    }
    if (full)
        sum_strips(p, s, true);
    else
        sum_strips(p, s, false);
    s->n = 0;
}

static void
plane_by_strips(const KilnDepthwisePlane *p)
{
    Strips s = { .n = 0 };
    int64_t width = p->dims[2];
    for (int64_t z = 0; z < p->dims[0]; z++) {
        for (int64_t y = 0; y < p->dims[1]; y++) {
            const float *in = p->in + z * p->pitch[0] + y * p->pitch[1];
            for (int64_t x = 0; x < width; x += VW) {
                s.in[s.n] = in + x;
                s.at[s.n] = (z * p->dims[1] + y) * width + x;
                s.lanes[s.n] = width - x < VW ? width - x : VW;
                if (++s.n == STRIPS)
                    flush_strips(p, &s);
            }
        }
    }
    if (s.n > 0)
        flush_strips(p, &s);
}

/* Vectors of outputs below each other: columns from x on, rows from y on. The masks are for loads
   of an input row and for stores. */
typedef struct {
    int64_t x, y;
    MASK in[4], out;
} Column;

/* Loads the inputs of the three taps of a row. */
ALWAYS_INLINE void
load_taps(const float *in, const Column *c, const int stride, const bool full, V x[3])
{
    if (stride == 1) {
        UNROLLED
        for (int tx = 0; tx < 3; tx++)
            x[tx] = load(in + tx, c->in[tx], full);
        return;
    }
    V a = load(in, c->in[0], full), b = load(in + VW, c->in[1], full);
    V after = load(in + 2, c->in[2], full), last = load(in + 2 + VW, c->in[3], full);
    x[0] = V_EVENS(a, b);
    x[1] = V_ODDS(a, b);
    x[2] = V_EVENS(after, last);
}

ALWAYS_INLINE void
sum_rows(const KilnDepthwisePlane *p, const Column *c, const int rows, const int stride,
         const bool full)
{
    V acc[BLOCK_ROWS];
    UNROLLED
    for (int r = 0; r < rows; r++)
        acc[r] = V_SET1(p->bias);
    UNROLLED
    for (int j = 0; j < stride * (rows - 1) + 3; j++) {
        int64_t y = stride * c->y + j - p->pad_y;
        if (y < 0 || y >= p->height)
            continue;
        V x[3];
        load_taps(p->in + y * p->width + stride * c->x - p->pad_x, c, stride, full, x);
        UNROLLED
        for (int tx = 0; tx < 3; tx++) {
            UNROLLED
            for (int r = 0; r < rows; r++) {
                int ty = j - stride * r;
                if (ty >= 0 && ty < 3)
                    acc[r] = V_FMA(V_SET1(p->weights[3 * ty + tx]), x[tx], acc[r]);
            }
        }
    }
    int64_t at = c->y * p->dims[2] + c->x;
    UNROLLED
    for (int r = 0; r < rows; r++)
        store_sum(p, at + r * p->dims[2], acc[r], c->out, full);
}

ALWAYS_INLINE void
sum_column(const KilnDepthwisePlane *p, Column *c, const int stride, const bool full)
{
    int64_t height = p->dims[1];
    for (c->y = 0; c->y + BLOCK_ROWS <= height; c->y += BLOCK_ROWS)
        sum_rows(p, c, BLOCK_ROWS, stride, full);
    switch (height - c->y) {
    case 1:
        sum_rows(p, c, 1, stride, full);
        break;
    case 2:
        sum_rows(p, c, 2, stride, full);
        break;
    case 3:
        sum_rows(p, c, 3, stride, full);
        break;
    }
}

ALWAYS_INLINE void
plane_of_3x3(const KilnDepthwisePlane *p, const int stride)
{
    Column c;
    for (c.x = 0; c.x < p->dims[2]; c.x += VW) {
        int64_t left = stride * c.x - p->pad_x;
        c.out = V_MASK(p->dims[2] - c.x);
        for (int i = 0; i < 4; i++) {
            int64_t at = left + (stride == 1 ? i : i / 2 * 2 + i % 2 * VW);
            c.in[i] = V_LANES(-at, p->width - at);
        }
        if (left >= 0 && left + 2 + stride * VW <= p->width && c.x + VW <= p->dims[2])
            sum_column(p, &c, stride, true);
        else
            sum_column(p, &c, stride, false);
    }
}

static void
depthwise_plane(const KilnDepthwisePlane *p)
{
    if (p->stride3x3 == 1)
        plane_of_3x3(p, 1);
    else if (p->stride3x3 == 2)
        plane_of_3x3(p, 2);
    else
        plane_by_strips(p);
}

#endif
