/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the transforms of a Winograd convolution F(4×4, 3×3). The including file defines
 * the vector type V, its width VW and the V_* operations first. The template defines the transforms
 * and KERNELS, the table of them. With a window d, a kernel g and the sums m over channels:
 *
 *        ⎡4  0 -5  0  1  0⎤        ⎡ 1/4    0     0 ⎤
 *        ⎢0 -4 -4  1  1  0⎥        ⎢-1/6  -1/6  -1/6⎥        ⎡1  1  1  1  1  0⎤
 *   Bᵀ = ⎢0  4 -4 -1  1  0⎥    G = ⎢-1/6   1/6  -1/6⎥   Aᵀ = ⎢0  1 -1  2 -2  0⎥
 *        ⎢0 -2 -1  2  1  0⎥        ⎢1/24  1/12   1/6⎥        ⎢0  1  1  4  4  0⎥
 *        ⎢0  2 -1 -2  1  0⎥        ⎢1/24 -1/12   1/6⎥        ⎣0  1 -1  8 -8  1⎦
 *        ⎣0  4  0 -5  0  1⎦        ⎣  0     0     1 ⎦
 *
 *   inputs Bᵀ d B, weights G g Gᵀ, results Aᵀ m A.
 *
 * Loops over the 36 matrices are unrolled. If one instruction steps from matrix to matrix, the
 * processor sees a stride. It then prefetches far behind the last matrix, where another thread
 * writes. */
#ifndef KILN_BACKENDS_CPU_CONV_WINOGRAD_LOOPS_H
#define KILN_BACKENDS_CPU_CONV_WINOGRAD_LOOPS_H

#include "backends/cpu/simd/unrolled.h"
#include "backends/cpu/conv/winograd_kernel.h"

#include <stdbool.h>
#include <string.h>

static void
zero_row(const KilnWinogradRow *r)
{
    for (int c = 0; c < 4; c++)
        memset(r->planes + c * r->plane, 0, (size_t)r->n * sizeof *r->planes);
}

static void
split_row(const KilnWinogradRow *r)
{
    if (!r->row) {
        zero_row(r);
        return;
    }
    for (int64_t x = 0; x < r->n; x += VW) {
        V v[4], even[2], odd[2];
        for (int j = 0; j < 4; j++) {
            const float *from = r->row + 4 * x + j * VW - r->pad;
            int64_t first = r->row - from;
            __builtin_prefetch(from + r->soon);
            v[j] = V_LOAD_SOME(from, V_LANES(first, first + r->width));
        }
        for (int j = 0; j < 2; j++) {
            even[j] = V_EVENS(v[2 * j], v[2 * j + 1]);
            odd[j] = V_ODDS(v[2 * j], v[2 * j + 1]);
        }
        float *planes = r->planes + x;
        V_STORE(planes, V_EVENS(even[0], even[1]));
        V_STORE(planes + r->plane, V_EVENS(odd[0], odd[1]));
        V_STORE(planes + 2 * r->plane, V_ODDS(even[0], even[1]));
        V_STORE(planes + 3 * r->plane, V_ODDS(odd[0], odd[1]));
    }
}

/* Bᵀ on six vectors. */
static inline __attribute__((always_inline)) void
transform_input(const V d[6], V t[6])
{
    const V four = V_SET1(4.0f), minus_four = V_SET1(-4.0f), minus_five = V_SET1(-5.0f);
    V even = V_FMA(minus_four, d[2], d[4]), odd = V_FMA(minus_four, d[1], d[3]);
    V even2 = V_SUB(d[4], d[2]), odd2 = V_SUB(d[3], d[1]);
    odd2 = V_ADD(odd2, odd2);
    t[0] = V_FMA(four, d[0], V_FMA(minus_five, d[2], d[4]));
    t[1] = V_ADD(even, odd);
    t[2] = V_SUB(even, odd);
    t[3] = V_ADD(even2, odd2);
    t[4] = V_SUB(even2, odd2);
    t[5] = V_FMA(four, d[1], V_FMA(minus_five, d[3], d[5]));
}

/* Aᵀ on six vectors. */
static inline __attribute__((always_inline)) void
transform_sums(const V m[6], V y[4])
{
    V sum1 = V_ADD(m[1], m[2]), difference1 = V_SUB(m[1], m[2]);
    V sum2 = V_ADD(m[3], m[4]), difference2 = V_SUB(m[3], m[4]);
    y[0] = V_ADD(V_ADD(m[0], sum1), sum2);
    y[1] = V_FMA(V_SET1(2.0f), difference2, difference1);
    y[2] = V_FMA(V_SET1(4.0f), sum2, sum1);
    y[3] = V_ADD(V_FMA(V_SET1(8.0f), difference2, difference1), m[5]);
}

/* Transforms a vector of tiles, from tile @i on. */
static inline __attribute__((always_inline)) void
input_vector(const KilnWinogradInput *p, int64_t i, const bool neighbours)
{
    PLACES places = V_PLACES(p->at + i);
    const float *in = p->in + p->at[i];
    float *out = p->out + i;
    V t[6][6]; /* column by column */
    UNROLLED
    for (int c = 0; c < 6; c++) {
        V d[6];
        for (int r = 0; r < 6; r++) {
            const float *from = in + (4 * (r % 4) + c % 4) * p->plane + r / 4 * p->pitch + c / 4;
            d[r] = neighbours ? V_LOAD(from) : V_PICK(from, places);
        }
        transform_input(d, t[c]);
    }
    UNROLLED
    for (int r = 0; r < 6; r++) {
        V d[6], v[6];
        for (int c = 0; c < 6; c++)
            d[c] = t[c][r];
        transform_input(d, v);
        for (int c = 0; c < 6; c++)
            V_STORE(out + (6 * r + c) * p->out_pitch, v[c]);
    }
}

/* Each tile lies at least one place behind the tile before it, or repeats the last tile. */
static bool
are_neighbours(const int32_t *at)
{
    return at[VW - 1] - at[0] == VW - 1 && at[VW - 1] != at[VW - 2];
}

static void
input_tiles(const KilnWinogradInput *p)
{
    for (int64_t i = 0; i < p->n; i += VW) {
        if (are_neighbours(p->at + i))
            input_vector(p, i, true);
        else
            input_vector(p, i, false);
    }
}

static void
output_tiles(const KilnWinogradOutput *p)
{
    const V bias = V_SET1(p->bias), lo = V_SET1(p->lo), hi = V_SET1(p->hi);
    for (int64_t i = 0; i < p->n; i += VW) {
        V t[6][4];
        UNROLLED
        for (int c = 0; c < 6; c++) {
            V m[6];
            for (int r = 0; r < 6; r++)
                m[r] = V_LOAD(p->in + (6 * r + c) * p->in_pitch + i);
            transform_sums(m, t[c]);
        }
        UNROLLED
        for (int r = 0; r < 4; r++) {
            V m[6], y[4];
            for (int c = 0; c < 6; c++)
                m[c] = t[c][r];
            transform_sums(m, y);
            for (int c = 0; c < 4; c++)
                V_STORE(p->out + (4 * r + c) * p->out_pitch + i,
                        V_MIN(hi, V_MAX(lo, V_ADD(y[c], bias))));
        }
    }
}

static inline __attribute__((always_inline)) void
store_vector(const KilnWinogradStore *s, int64_t x, V v, const bool residual)
{
    MASK mask = V_MASK(s->width - x);
    __builtin_prefetch(s->row + s->soon + x, 1);
    if (residual) { /* the residual may be the row itself */
        v = V_ADD(v, V_LOAD_SOME(s->residual + x, mask));
        v = V_MIN(V_SET1(s->hi), V_MAX(V_SET1(s->lo), v));
    }
    V_STORE_SOME(s->row + x, mask, v);
}

static inline __attribute__((always_inline)) void
store_columns(const KilnWinogradStore *s, const bool residual)
{
    for (int64_t x = 0; x < s->width; x += 4 * VW) {
        const float *planes = s->planes + x / 4;
        V p0 = V_LOAD(planes), p1 = V_LOAD(planes + s->plane), p2 = V_LOAD(planes + 2 * s->plane),
          p3 = V_LOAD(planes + 3 * s->plane);
        V even = V_ZIP_LOW(p0, p2), odd = V_ZIP_LOW(p1, p3);
        store_vector(s, x, V_ZIP_LOW(even, odd), residual);
        if (x + VW < s->width)
            store_vector(s, x + VW, V_ZIP_HIGH(even, odd), residual);
        if (x + 2 * VW >= s->width)
            break;
        even = V_ZIP_HIGH(p0, p2), odd = V_ZIP_HIGH(p1, p3);
        store_vector(s, x + 2 * VW, V_ZIP_LOW(even, odd), residual);
        if (x + 3 * VW < s->width)
            store_vector(s, x + 3 * VW, V_ZIP_HIGH(even, odd), residual);
    }
}

static void
store_row(const KilnWinogradStore *s)
{
    if (s->residual)
        store_columns(s, true);
    else
        store_columns(s, false);
}

/* G on three vectors. */
static inline __attribute__((always_inline)) void
transform_weights(const V g[3], V u[6])
{
    const V sixth = V_SET1(1.0f / 6.0f), minus_sixth = V_SET1(-1.0f / 6.0f);
    V ends = V_ADD(g[0], g[2]);
    V outer = V_FMA(V_SET1(0.25f), g[0], g[2]), half = V_MUL(V_SET1(0.5f), g[1]);
    u[0] = V_MUL(V_SET1(0.25f), g[0]);
    u[1] = V_MUL(minus_sixth, V_ADD(ends, g[1]));
    u[2] = V_MUL(minus_sixth, V_SUB(ends, g[1]));
    u[3] = V_MUL(sixth, V_ADD(outer, half));
    u[4] = V_MUL(sixth, V_SUB(outer, half));
    u[5] = g[2];
}

static void
pack_weights(const KilnWinogradWeights *w)
{
    float lanes[9][16] = { 0 };
    for (int64_t i = 0; i < w->channels; i++) {
        float taps[9];
        memcpy(taps, w->src + 4 * i * w->stride, sizeof taps);
        for (int k = 0; k < 9; k++)
            lanes[k][i] = taps[k];
    }
    for (int64_t i = 0; i < w->channels; i += VW) {
        V t[3][6]; /* column by column */
        MASK mask = V_MASK(w->channels - i);
        for (int c = 0; c < 3; c++) {
            V g[3];
            for (int r = 0; r < 3; r++)
                g[r] = V_LOAD(lanes[3 * r + c] + i);
            transform_weights(g, t[c]);
        }
        for (int r = 0; r < 6; r++) {
            V g[3] = { t[0][r], t[1][r], t[2][r] }, u[6];
            transform_weights(g, u);
            for (int c = 0; c < 6; c++)
                V_STORE_SOME(w->out + (6 * r + c) * w->out_pitch + i, mask, u[c]);
        }
    }
}

const KilnWinogradKernels KERNELS = {
    .row = split_row,
    .input = input_tiles,
    .output = output_tiles,
    .store = store_row,
    .weights = pack_weights,
};

#endif
