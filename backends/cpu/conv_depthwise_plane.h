/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depthwise plane kernel, as a template: a file that includes it has included one of the simd
 * headers, and gets depthwise_plane(). Four vectors of outputs are summed at a time, side by side
 * or from several rows: enough independent sums to hide the latency of the multiply-add, and each
 * weight is broadcast once for all four.
 */
#pragma once

#include "backends/cpu/conv_depthwise.h"

enum {
    STRIPS = 4
};

/* Up to four vectors of outputs. */
typedef struct {
    const float *in[STRIPS];
    int64_t at[STRIPS], lanes[STRIPS];
    int n;
} Strips;

/* Constant full lets the compiler drop the masks. */
static inline __attribute__((always_inline)) void
sum_strips(const KilnDepthwisePlane *p, const Strips *s, const bool full)
{
    MASK m0 = V_MASK(s->lanes[0]), m1 = V_MASK(s->lanes[1]);
    MASK m2 = V_MASK(s->lanes[2]), m3 = V_MASK(s->lanes[3]);
    V a0 = V_SET1(p->bias), a1 = a0, a2 = a0, a3 = a0;
    const float *i0 = s->in[0], *i1 = s->in[1], *i2 = s->in[2], *i3 = s->in[3];
    for (int64_t t = 0; t < p->taps; t++) {
        V w = V_SET1(p->weights[t]);
        int64_t o = p->offsets[t];
        a0 = V_FMA(w, full ? V_LOAD(i0 + o) : V_LOAD_SOME(i0 + o, m0), a0);
        a1 = V_FMA(w, full ? V_LOAD(i1 + o) : V_LOAD_SOME(i1 + o, m1), a1);
        a2 = V_FMA(w, full ? V_LOAD(i2 + o) : V_LOAD_SOME(i2 + o, m2), a2);
        a3 = V_FMA(w, full ? V_LOAD(i3 + o) : V_LOAD_SOME(i3 + o, m3), a3);
    }
    V acc[STRIPS] = { a0, a1, a2, a3 };
    MASK masks[STRIPS] = { m0, m1, m2, m3 };
    V lo = V_SET1(p->lo), hi = V_SET1(p->hi);
    for (int i = 0; i < s->n; i++) {
        V x = acc[i];
        if (p->residual)
            x = V_ADD(x, V_LOAD_SOME(p->residual + s->at[i], masks[i]));
        x = V_MIN(hi, V_MAX(lo, x));
        if (full)
            V_STORE(p->out + s->at[i], x);
        else
            V_STORE_SOME(p->out + s->at[i], masks[i], x);
    }
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
depthwise_plane(const KilnDepthwisePlane *p)
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
