/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the register tile over weights in 28 bits (gemm_exact.h). The including file
 * includes gemm_tile_cases.h first and defines
 *
 *     EXACT                     a vector of VW lanes of 32 bits
 *     EXACT_LOAD(p)             loads one from any address
 *     EXACT_TABLE, exact_table(exponents)
 *     exact_exponents(codes, table, odd)   exponents of steps 0, 2, 4, 6 or 1, 3, 5, 7, a byte each
 *     exact_float(x, exponents, r)         x with byte r of exponents as its exponent
 *     exact_join(x, y, z)                  sign and mantissa from bits 23 … 30 of three rows
 *
 * It sums in the order of tile(), so that the bits are the same. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_EXACT_TILE_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_EXACT_TILE_H

#include "backends/cpu/gemm/gemm_exact.h"
#include "backends/cpu/gemm/gemm_kernel.h"

#include <stddef.h>

enum {
    EXACT_SUMS = 6, /* most accumulators: rows times sums that are kept apart */
    EXACT_BYTES = VW * 4,
};

/* Loads vector @r of the piece at @b. Prefetches the cache lines @ahead bytes further on. */
ALWAYS_INLINE EXACT
exact_vector(const char *b, ptrdiff_t ahead, const int r)
{
    b += r * EXACT_BYTES;
    if (r * EXACT_BYTES % 64 == 0)
        __builtin_prefetch(b + ahead, 0, 3);
    return EXACT_LOAD(b);
}

/* Adds one step of one vector of columns. @step selects the sum, of @sums that are kept apart. */
ALWAYS_INLINE void
exact_step(V *acc, const float *a, V x, const int rows, const int sums, const int step)
{
    V *sum = acc + step % sums * rows;
    a += step * rows;
    sum[0] = V_FMA(V_SET1(a[0]), x, sum[0]);
    if (rows > 1)
        sum[1] = V_FMA(V_SET1(a[1]), x, sum[1]);
    if (rows > 2)
        sum[2] = V_FMA(V_SET1(a[2]), x, sum[2]);
    if (rows > 3)
        sum[3] = V_FMA(V_SET1(a[3]), x, sum[3]);
}

// clang-format off
#define EXACT_STEP(r, x)                                                                           \
    exact_step(acc, a, exact_float(x, (r) % 2 ? odd : even, (r) / 2), rows, sums, r);
#define EXACT_RAW(r)                                                                               \
    exact_step(acc, a, V_LOAD((const float *)(const void *)(b + (r) * EXACT_BYTES)), rows, sums, r);
// clang-format on

/* The accumulators of a panel and its read positions. */
typedef struct {
    V left[EXACT_SUMS], right[EXACT_SUMS];
    EXACT_TABLE table;
    const char *b, *end, *soon;
    uint32_t raw_left, raw_right; /* a bit for each remaining group: is it raw? */
} ExactPanel;

/* Sums a piece, which is eight steps. @ahead is the distance of the prefetch. Near the end of a
   block it leads to the block that is read next, which need not lie behind this one. */
ALWAYS_INLINE void
exact_piece(ExactPanel *p, V *acc, const float *a, ptrdiff_t ahead, bool raw, const int rows,
            const int sums)
{
    const char *b = p->b;
    if (raw) {
        EXACT_RAW(0)
        EXACT_RAW(1)
        EXACT_RAW(2)
        EXACT_RAW(3)
        EXACT_RAW(4)
        EXACT_RAW(5)
        EXACT_RAW(6)
        EXACT_RAW(7)
        p->b = b + 8 * EXACT_BYTES;
        return;
    }
    EXACT codes = exact_vector(b, ahead, 0);
    EXACT even = exact_exponents(codes, p->table, false);
    EXACT odd = exact_exponents(codes, p->table, true);
    EXACT x = exact_vector(b, ahead, 1), y = exact_vector(b, ahead, 2),
          z = exact_vector(b, ahead, 3);
    EXACT_STEP(0, x)
    EXACT_STEP(1, y)
    EXACT_STEP(2, z)
    EXACT sixth = exact_join(x, y, z);
    x = exact_vector(b, ahead, 4);
    y = exact_vector(b, ahead, 5);
    z = exact_vector(b, ahead, 6);
    EXACT_STEP(3, x)
    EXACT_STEP(4, y)
    EXACT_STEP(5, z)
    EXACT_STEP(6, sixth)
    EXACT_STEP(7, exact_join(x, y, z))
    p->b = b + 7 * EXACT_BYTES;
}

ALWAYS_INLINE ExactPanel
exact_panel(const void *b, const void *soon, const KilnGemmExactBlock *block)
{
    V zero = V_SET1(0.0f);
    return (ExactPanel){ .left = { zero, zero, zero, zero, zero, zero },
                         .right = { zero, zero, zero, zero, zero, zero },
                         .table = exact_table(block->exponents),
                         .b = b,
                         .end = (const char *)b + block->bytes,
                         .soon = soon,
                         .raw_left = block->raw[0],
                         .raw_right = block->raw[1] };
}

ALWAYS_INLINE void
exact_group(ExactPanel *p, const float *a, const int vectors, const int rows, const int sums)
{
    ptrdiff_t ahead = KILN_GEMM_EXACT_AHEAD;
    if (p->end - p->b <= KILN_GEMM_EXACT_AHEAD)
        ahead += p->soon - p->end;
    exact_piece(p, p->left, a, ahead, p->raw_left & 1, rows, sums);
    p->raw_left >>= 1;
    if (vectors < 2)
        return;
    exact_piece(p, p->right, a, ahead, p->raw_right & 1, rows, sums);
    p->raw_right >>= 1;
}

/* Adds a step behind the last group. It is stored as floats, for all vectors. */
ALWAYS_INLINE void
exact_rest(ExactPanel *p, const float *a, const int vectors, const int rows, const int sums,
           const int step)
{
    const float *b = (const float *)(const void *)p->b;
    exact_step(p->left, a, V_LOAD(b), rows, sums, step);
    if (vectors > 1)
        exact_step(p->right, a, V_LOAD(b + VW), rows, sums, step);
    p->b += vectors * EXACT_BYTES;
}

// clang-format off
#define EXACT_KEEP(j)                                                                              \
    if (j < rows * sums) {                                                                         \
        result.v[j][0] = p->left[j];                                                               \
        result.v[j][1] = p->right[j];                                                              \
    }
// clang-format on

ALWAYS_INLINE void
exact_store(const KilnGemmTile *t, const ExactPanel *p, const int vectors, const int rows,
            const int sums)
{
    Sums result;
    EXACT_KEEP(0)
    EXACT_KEEP(1)
    EXACT_KEEP(2)
    EXACT_KEEP(3)
#if TILE_ROWS >= 6
    EXACT_KEEP(4)
    EXACT_KEEP(5)
#endif
    join_sums(&result, rows, vectors, sums);
    store_sums(t, &result);
}

// clang-format off
#define EXACT_REST(step)                                                                           \
    do {                                                                                           \
        exact_rest(&p, a, vectors, rows, sums, step);                                              \
        if (two)                                                                                   \
            exact_rest(&beside, a, vectors, rows, sums, step);                                     \
    } while (0)
// clang-format on

ALWAYS_INLINE void
sum_exact(const KilnGemmTile *t, const int vectors, const bool two, const int rows, const int sums)
{
    const float *restrict a = t->a;
    ExactPanel p = exact_panel(t->b, t->soon, t->b_block), beside;
    if (two)
        beside = exact_panel(t->beside, t->soon_beside, t->beside_block);
    int64_t k = 0;
    for (; k + KILN_GEMM_EXACT_STEPS <= t->depth; k += KILN_GEMM_EXACT_STEPS) {
        exact_group(&p, a, vectors, rows, sums);
        if (two)
            exact_group(&beside, a, vectors, rows, sums);
        a += KILN_GEMM_EXACT_STEPS * rows;
    }
    for (; k + sums <= t->depth; k += sums, a += sums * rows) {
        EXACT_REST(0);
        if (sums > 1)
            EXACT_REST(1);
        if (sums > 2) {
            EXACT_REST(2);
            EXACT_REST(3);
        }
    }
    for (; k < t->depth; k++, a += rows)
        EXACT_REST(0);
    if (!two) {
        exact_store(t, &p, vectors, rows, sums);
        return;
    }
#if TILE_ROWS >= 14
    KilnGemmTile half = *t;
    half.cols = 2 * VW;
    exact_store(&half, &p, vectors, rows, sums);
    half = kiln_gemm_tile_beside(t, 2 * VW);
    exact_store(&half, &beside, vectors, rows, sums);
#endif
}

// clang-format off
#define EXACT_CASE(n, sums) case n: sum_exact(t, vectors, two, n, sums); break;
// clang-format on

ALWAYS_INLINE void
tile_of_exact(const KilnGemmTile *t, const int vectors, const bool two)
{
    switch (t->rows) {
        EVERY_NARROW(EXACT_CASE)
    }
}

static void
tile_exact(const KilnGemmTile *t)
{
    if (t->cols > VW)
        tile_of_exact(t, 2, false);
    else
        tile_of_exact(t, 1, false);
}

#if TILE_ROWS >= 14
static void
pair_exact(const KilnGemmTile *t)
{
    tile_of_exact(t, 2, true);
}
#endif

#endif
