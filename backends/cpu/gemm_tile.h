/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register tile, as a template: a file that includes it has defined the vector type V, its
 * width VW in floats, MASK and the V_* operations, TILE_ROWS, and gets tile(). Rows and vectors of
 * a tile are compile-time constants after inlining, so the accumulators live in registers.
 *
 * Few rows give few independent sums, too few to hide the latency of a fused multiply-add: tiles of
 * up to three rows sum even and odd (or four) steps of the depth apart and add the sums at the end.
 */
#pragma once

#include "backends/cpu/gemm_kernel.h"

#if defined(__clang__)
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE V
tile_start(const KilnGemmTile *t, int64_t i, int64_t j, MASK mask, const bool full)
{
    if (!t->first)
        return full ? V_LOAD(t->out + i * t->out_pitch + j)
                    : V_LOAD_SOME(t->out + i * t->out_pitch + j, mask);
    V v = V_SET1(0.0f);
    if (t->bias) {
        const float *bias = t->bias + i * t->bias_row + j * t->bias_col;
        V w = t->bias_col == 0 ? V_SET1(*bias) : full ? V_LOAD(bias) : V_LOAD_SOME(bias, mask);
        v = V_MUL(V_SET1(t->beta), w);
    }
    if (t->residual) {
        const float *residual = t->residual + i * t->out_pitch + j;
        v = V_ADD(v, full ? V_LOAD(residual) : V_LOAD_SOME(residual, mask));
    }
    return v;
}

ALWAYS_INLINE void
tile_finish(const KilnGemmTile *t, V (*acc)[2], const int rows, const int vectors, const bool full)
{
    V alpha = V_SET1(t->alpha), lo = V_SET1(t->lo), hi = V_SET1(t->hi);
    UNROLLED
    for (int v = 0; v < vectors; v++) {
        int64_t j = v * VW;
        MASK mask = V_MASK(t->cols - j);
        UNROLLED
        for (int i = 0; i < rows; i++) {
            V x = V_FMA(alpha, acc[i][v], tile_start(t, i, j, mask, full));
            if (t->last)
                x = V_MIN(hi, V_MAX(lo, x));
            if (full)
                V_STORE(t->out + i * t->out_pitch + j, x);
            else
                V_STORE_SOME(t->out + i * t->out_pitch + j, mask, x);
        }
    }
}

ALWAYS_INLINE void
tile_of(const KilnGemmTile *t, const int rows, const int vectors, const int sums)
{
    V acc[4][TILE_ROWS][2];
    UNROLLED
    for (int u = 0; u < sums; u++) {
        UNROLLED
        for (int i = 0; i < rows; i++)
            acc[u][i][0] = acc[u][i][1] = V_SET1(0.0f);
    }
    const float *restrict a = t->a, *restrict b = t->b;
    int64_t k = 0, pitch = t->b_pitch;
    for (; k + sums <= t->depth; k += sums) {
        UNROLLED
        for (int u = 0; u < sums; u++) {
            V b0 = V_LOAD(b), b1 = vectors > 1 ? V_LOAD(b + VW) : b0;
            UNROLLED
            for (int i = 0; i < rows; i++) {
                V x = V_SET1(a[i]);
                acc[u][i][0] = V_FMA(x, b0, acc[u][i][0]);
                if (vectors > 1)
                    acc[u][i][1] = V_FMA(x, b1, acc[u][i][1]);
            }
            a += rows;
            b += pitch;
        }
    }
    for (; sums > 1 && k < t->depth; k++, a += rows, b += pitch) {
        UNROLLED
        for (int i = 0; i < rows; i++) {
            acc[0][i][0] = V_FMA(V_SET1(a[i]), V_LOAD(b), acc[0][i][0]);
            if (vectors > 1)
                acc[0][i][1] = V_FMA(V_SET1(a[i]), V_LOAD(b + VW), acc[0][i][1]);
        }
    }
    UNROLLED
    for (int u = 1; u < sums; u++) {
        UNROLLED
        for (int i = 0; i < rows; i++) {
            acc[0][i][0] = V_ADD(acc[0][i][0], acc[u][i][0]);
            acc[0][i][1] = V_ADD(acc[0][i][1], acc[u][i][1]);
        }
    }
    if (t->cols == vectors * VW)
        tile_finish(t, acc[0], rows, vectors, true);
    else
        tile_finish(t, acc[0], rows, vectors, false);
}

// clang-format off
#define TILE_CASE(n, sums)                                                                         \
    case n:                                                                                        \
        if (t->cols > VW) tile_of(t, n, 2, sums); else tile_of(t, n, 1, sums);                     \
        break;
// clang-format on

static void
tile(const KilnGemmTile *t)
{
    switch (t->rows) {
        TILE_CASE(1, 4)
        TILE_CASE(2, 2)
        TILE_CASE(3, 2)
        TILE_CASE(4, 1)
#if TILE_ROWS >= 6
        TILE_CASE(5, 1)
        TILE_CASE(6, 1)
#endif
#if TILE_ROWS >= 14
        TILE_CASE(7, 1)
        TILE_CASE(8, 1)
        TILE_CASE(9, 1)
        TILE_CASE(10, 1)
        TILE_CASE(11, 1)
        TILE_CASE(12, 1)
        TILE_CASE(13, 1)
        TILE_CASE(14, 1)
#endif
    }
}
