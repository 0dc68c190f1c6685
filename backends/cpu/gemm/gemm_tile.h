/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the register tile. The including file defines the vector type V, its width VW in
 * floats, MASK, the V_* operations and TILE_ROWS first. The template defines sum_tile(), from which
 * gemm_tile_cases.h makes tile(). Rows and vectors of a tile are compile-time constants after
 * inlining, so that the accumulators live in registers.
 *
 * Few rows give too few independent sums to hide the latency of a fused multiply-add. Tiles of up
 * to three rows therefore keep two or four sums per element, and add them at the end. Such tiles
 * also wait for memory. A pair reads two column panels at once: two streams are faster than one.
 *
 * A column behind a whole vector (an edge) would take a second vector, with a multiply-add for each
 * row. Its sums are the lanes of one vector of rows instead. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_TILE_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_TILE_H

#include "backends/cpu/gemm/gemm_kernel.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The sums of a tile, in memory. One function adds bias and tail for all tiles. That costs a trip
   through the first-level cache and saves much code. */
typedef struct {
    V v[TILE_ROWS][2];
} Sums;

/* The compile-time constants of a tile. */
typedef struct {
    int rows, vectors;
    int sums;  /* sums per element, each over every sums-th step of the depth */
    bool edge; /* there is a column behind the vector */
    bool gather, bare;
    KilnGemmStorage storage;
} Kind;

/* Loads a vector of floats from element @at of @p on. */
ALWAYS_INLINE V
load_stored(const void *p, int64_t at, const KilnGemmStorage storage)
{
    if (storage == KILN_GEMM_BF16)
        return V_LOAD_BF16((const uint16_t *)p + at);
    if (storage == KILN_GEMM_F16)
        return V_LOAD_F16((const uint16_t *)p + at);
    return V_LOAD((const float *)p + at);
}

ALWAYS_INLINE V
load_lanes(const float *p, MASK mask, const bool full)
{
    return full ? V_LOAD(p) : V_LOAD_SOME(p, mask);
}

/* Loads the bias of row @i from column @j on, times beta. */
ALWAYS_INLINE V
tile_start(const KilnGemmTile *t, int64_t i, int64_t j, MASK mask, const bool full)
{
    if (!t->bias)
        return V_SET1(0.0f);
    const float *bias = t->bias + i * t->bias_row + j * t->bias_col;
    return V_MUL(V_SET1(t->beta), t->bias_col == 0 ? V_SET1(*bias) : load_lanes(bias, mask, full));
}

ALWAYS_INLINE void
store_vectors(const KilnGemmTile *t, const Sums *sums, int64_t j, MASK mask, const bool full)
{
    V alpha = V_SET1(t->alpha), lo = V_SET1(t->lo), hi = V_SET1(t->hi);
    for (int64_t i = 0; i < t->rows; i++) {
        float *out = t->out + i * t->out_pitch + j;
        V start = t->first ? tile_start(t, i, j, mask, full) : load_lanes(out, mask, full);
        V x = V_FMA(alpha, sums->v[i][j > 0], start);
        if (t->last && t->residual)
            x = V_ADD(x, load_lanes(t->residual + i * t->out_pitch + j, mask, full));
        if (t->last)
            x = V_MIN(hi, V_MAX(lo, x));
        if (full)
            V_STORE(out, x);
        else
            V_STORE_SOME(out, mask, x);
    }
}

/* Stores rows of two whole vectors, with a bias per row and only one block of depth. Most
   convolutions take this way. */
ALWAYS_INLINE void
store_rows(const KilnGemmTile *t, const Sums *sums, const bool residual)
{
    V alpha = V_SET1(t->alpha), lo = V_SET1(t->lo), hi = V_SET1(t->hi);
    float *out = t->out;
    for (int64_t i = 0; i < t->rows; i++, out += t->out_pitch) {
        V start = tile_start(t, i, 0, V_MASK(VW), true);
        for (int j = 0; j < 2; j++) {
            V x = V_FMA(alpha, sums->v[i][j], start);
            if (residual)
                x = V_ADD(x, V_LOAD(t->residual + (out - t->out) + j * VW));
            V_STORE(out + j * VW, V_MIN(hi, V_MAX(lo, x)));
        }
    }
}

static __attribute__((noinline)) void
store_sums(const KilnGemmTile *t, const Sums *sums)
{
    if (t->first && t->last && t->bias_col == 0 && t->cols == 2 * VW) {
        if (t->residual)
            store_rows(t, sums, true);
        else
            store_rows(t, sums, false);
        return;
    }
    for (int64_t j = 0; j < t->cols; j += VW) {
        MASK mask = V_MASK(t->cols - j);
        if (t->cols - j >= VW)
            store_vectors(t, sums, j, mask, true);
        else
            store_vectors(t, sums, j, mask, false);
    }
}

/* Accumulators are numbered names, because not every compiler keeps a large array in registers.
   Number j sums row j % rows over every sums-th step of depth, from step j / rows on. A panel holds
   the elements of sums steps in this order. */
// clang-format off
#define EVERY_ACC(X) X(0) X(1) X(2) X(3) EVERY_ACC_6(X) EVERY_ACC_14(X)
#if TILE_ROWS >= 6
#define EVERY_ACC_6(X) X(4) X(5)
#else
#define EVERY_ACC_6(X)
#endif
#if TILE_ROWS >= 14
#define EVERY_ACC_14(X) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#else
#define EVERY_ACC_14(X)
#endif
#define ZERO(j) V left##j = V_SET1(0.0f), right##j = left##j;
#define ROW(u) (b + size * (gather ? offsets[k + (u)] : (u) * pitch))
#define STEP(j)                                                                                    \
    if (j < n) {                                                                                   \
        V x = V_SET1(a[j]);                                                                        \
        left##j = V_FMA(x, load_stored(ROW(j / rows), 0, storage), left##j);                       \
        if (vectors > 1)                                                                           \
            right##j = V_FMA(x, load_stored(ROW(j / rows), VW, storage), right##j);                \
    }
#define KEEP(j)                                                                                    \
    if (j < rows * sums) {                                                                         \
        result.v[j][0] = left##j;                                                                  \
        if (vectors > 1)                                                                           \
            result.v[j][1] = right##j;                                                             \
    }
#define PUT(j)                                                                                     \
    if (j < rows) {                                                                                \
        V_STORE(out + j * out_pitch, left##j);                                                     \
        if (vectors > 1)                                                                           \
            V_STORE(out + j * out_pitch + VW, right##j);                                           \
    }
#define ADD_TO(j)                                                                                  \
    if (j < rows) {                                                                                \
        left##j = V_ADD(V_LOAD(out + j * out_pitch), left##j);                                     \
        if (vectors > 1)                                                                           \
            right##j = V_ADD(V_LOAD(out + j * out_pitch + VW), right##j);                          \
    }
#define ZERO_PAIR(j) ZERO(j) V left_beside##j = left##j, right_beside##j = left##j;
#define STEP_PAIR(j)                                                                               \
    if (j < n) {                                                                                   \
        V x = V_SET1(a[j]);                                                                        \
        int64_t at = (j / rows) * 2 * VW;                                                          \
        left##j = V_FMA(x, V_LOAD(b + at), left##j);                                               \
        right##j = V_FMA(x, V_LOAD(b + at + VW), right##j);                                        \
        left_beside##j = V_FMA(x, V_LOAD(beside + at), left_beside##j);                            \
        right_beside##j = V_FMA(x, V_LOAD(beside + at + VW), right_beside##j);                     \
    }
#define KEEP_PAIR(j)                                                                               \
    if (j < rows * sums) {                                                                         \
        result.v[j][0] = left##j;                                                                  \
        result.v[j][1] = right##j;                                                                 \
        result_beside.v[j][0] = left_beside##j;                                                    \
        result_beside.v[j][1] = right_beside##j;                                                   \
    }
// clang-format on

/* Adds the sums that were kept apart. */
ALWAYS_INLINE void
join_sums(Sums *result, const int rows, const int vectors, const int sums)
{
    for (int j = rows; j < rows * sums; j++) {
        result->v[j % rows][0] = V_ADD(result->v[j % rows][0], result->v[j][0]);
        if (vectors > 1)
            result->v[j % rows][1] = V_ADD(result->v[j % rows][1], result->v[j][1]);
    }
}

/* Stores the bare sums of the column behind the vector. */
ALWAYS_INLINE void
put_edge(const KilnGemmTile *t, const float *edge, const int rows)
{
    float *out = t->out + VW;
    for (int i = 0; i < rows; i++, out += t->out_pitch)
        *out = t->first ? edge[i] : *out + edge[i];
}

ALWAYS_INLINE void
sum_tile(const KilnGemmTile *t, const Kind kind)
{
    const int rows = kind.rows, vectors = kind.vectors, sums = kind.sums;
    const bool gather = kind.gather;
    const KilnGemmStorage storage = kind.storage;
    float column[VW];
    V edge = V_SET1(0.0f);
    EVERY_ACC(ZERO)
    const int64_t size = kiln_gemm_element_size(storage);
    const float *restrict a = t->a;
    const char *restrict b = t->b;
    const int64_t *restrict offsets = t->b_offsets;
    const char *soon = (const char *)t->soon;
    int64_t k = 0, pitch = t->b_pitch;
    for (; k + sums <= t->depth; k += sums) {
        const int n = rows * sums;
        EVERY_ACC(STEP)
        if (kind.edge) {
            V x = V_SET1(((const float *)(const void *)b)[VW]);
            edge = V_FMA(V_LOAD_SOME(a, V_MASK(rows)), x, edge);
        }
        if (rows >= 4)
            __builtin_prefetch(soon, 0, 2);
        soon += 64;
        a += n;
        b += gather ? 0 : size * sums * pitch;
    }
    for (; sums > 1 && k < t->depth; k++) {
        const int n = rows;
        EVERY_ACC(STEP)
        a += n;
        b += gather ? 0 : size * pitch;
    }
    V_STORE(column, edge);
    if (kind.bare) {
        float *out = t->out;
        int64_t out_pitch = t->out_pitch;
        if (!t->first) {
            EVERY_ACC(ADD_TO)
        }
        EVERY_ACC(PUT)
        if (kind.edge)
            put_edge(t, column, rows);
        return;
    }
    Sums result;
    EVERY_ACC(KEEP)
    join_sums(&result, rows, vectors, sums);
    for (int i = 0; kind.edge && i < rows; i++)
        result.v[i][1] = V_SET1(column[i]);
    store_sums(t, &result);
}

#if TILE_ROWS >= 14
ALWAYS_INLINE void
sum_pair(const KilnGemmTile *t, const int rows, const int sums)
{
    EVERY_ACC(ZERO_PAIR)
    const float *restrict a = t->a, *restrict b = t->b, *restrict beside = t->beside;
    int64_t k = 0;
    for (; k + sums <= t->depth; k += sums) {
        const int n = rows * sums;
        EVERY_ACC(STEP_PAIR)
        a += n;
        b += sums * 2 * VW;
        beside += sums * 2 * VW;
    }
    for (; sums > 1 && k < t->depth; k++) {
        const int n = rows;
        EVERY_ACC(STEP_PAIR)
        a += n;
        b += 2 * VW;
        beside += 2 * VW;
    }
    Sums result, result_beside;
    EVERY_ACC(KEEP_PAIR)
    join_sums(&result, rows, 2, sums);
    join_sums(&result_beside, rows, 2, sums);
    KilnGemmTile half = *t;
    half.cols = 2 * VW;
    store_sums(&half, &result);
    half = kiln_gemm_tile_beside(t, 2 * VW);
    store_sums(&half, &result_beside);
}
#endif

static void
finish(const KilnGemmFinish *f)
{
    V alpha = V_SET1(f->alpha), bias = V_SET1(f->bias), lo = V_SET1(f->lo), hi = V_SET1(f->hi);
    for (int64_t i = 0; i < f->n; i += VW) {
        MASK mask = V_MASK(f->n - i);
        V x = V_FMA(alpha, V_LOAD_SOME(f->sums + i, mask), bias);
        if (f->residual)
            x = V_ADD(x, V_LOAD_SOME(f->residual + i, mask));
        V_STORE_SOME(f->out + i, mask, V_MIN(hi, V_MAX(lo, x)));
    }
}

#endif
