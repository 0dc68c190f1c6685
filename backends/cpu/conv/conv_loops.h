/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the row loops of a transposed convolution; used like conv_depthwise_plane.h. The
 * including file also defines V_ZIP(low, high, a, b): it interleaves a and b into low and high. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_LOOPS_H
#define KILN_BACKENDS_CPU_CONV_CONV_LOOPS_H

#include "backends/cpu/conv/conv_kernel.h"

static void
add_rows(float *dst, const float *src, float scale, int64_t n)
{
    const V factor = V_SET1(scale);
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        V_STORE(dst + i, V_FMA(factor, V_LOAD(src + i), V_LOAD(dst + i)));
    if (i < n) {
        const MASK mask = V_MASK(n - i);
        V_STORE_SOME(dst + i, mask,
                     V_FMA(factor, V_LOAD_SOME(src + i, mask), V_LOAD_SOME(dst + i, mask)));
    }
}

static inline V
finished(const KilnWeave *w, const float *sums)
{
    V x = V_ADD(V_SET1(w->bias), V_LOAD(sums));
    return V_MIN(V_SET1(w->hi), V_MAX(V_SET1(w->lo), x));
}

static void
weave(const KilnWeave *w)
{
    int64_t length = w->length;
    if (w->ways == 1) {
        for (int64_t x = 0; x < length; x += VW)
            V_STORE_SOME(w->dst + x, V_MASK(length - x), finished(w, w->src + x));
    } else if (w->ways == 2) {
        for (int64_t x = 0; x < length; x += 2 * VW) {
            V a = finished(w, w->src + x / 2), b = finished(w, w->src + w->pitch + x / 2);
            V low, high;
            V_ZIP(low, high, a, b);
            V_STORE_SOME(w->dst + x, V_MASK(length - x), low);
            V_STORE_SOME(w->dst + x + VW, V_MASK(length - x - VW), high);
        }
    } else {
        for (int64_t x = 0; x < length; x++) {
            float v = w->bias + w->src[x % w->ways * w->pitch + x / w->ways];
            v = w->lo > v ? w->lo : v;
            w->dst[x] = w->hi < v ? w->hi : v;
        }
    }
}

#endif
