/* SPDX-License-Identifier: Apache-2.0 */
/* The register tile of gemm_tile.h for every number of rows, and their choice. The including file
 * defines the macros of gemm_tile.h first. It gets tile(), tile_sums(), the tiles of 16 bits and
 * pair(). */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_TILE_CASES_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_TILE_CASES_H

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_tile.h"

ALWAYS_INLINE void
tile_of(const KilnGemmTile *t, const int rows, const int sums)
{
    const bool one = t->cols <= VW;
    if (t->b_offsets && one)
        sum_tile(t, (Kind){ .rows = rows, .vectors = 1, .sums = sums, .gather = true });
    else if (t->b_offsets)
        sum_tile(t, (Kind){ .rows = rows, .vectors = 2, .sums = sums, .gather = true });
    else if (one)
        sum_tile(t, (Kind){ .rows = rows, .vectors = 1, .sums = sums });
    else
        sum_tile(t, (Kind){ .rows = rows, .vectors = 2, .sums = sums });
}

ALWAYS_INLINE void
bare_tile_of(const KilnGemmTile *t, const int rows)
{
    if (t->cols <= VW)
        sum_tile(t, (Kind){ .rows = rows, .vectors = 1, .sums = 1, .bare = true });
    else
        sum_tile(t, (Kind){ .rows = rows, .vectors = 2, .sums = 1, .bare = true });
}

/* FEW: (rows, sums per element). MANY: rows with one sum per element. */
// clang-format off
#define EVERY_FEW(X) X(1, 4) X(2, 2) X(3, TILE_ROWS >= 6 ? 2 : 1)
#define EVERY_MANY(X) X(4) EVERY_MANY_6(X) EVERY_MANY_14(X)
#if TILE_ROWS >= 6
#define EVERY_MANY_6(X) X(5) X(6)
#else
#define EVERY_MANY_6(X)
#endif
#if TILE_ROWS >= 14
#define EVERY_MANY_14(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define EVERY_MANY_14(X)
#endif
/* The rows of narrow storages and pairs. They sum as tile() does. */
#define EVERY_NARROW(X) EVERY_FEW(X) X(4, 1)
#define FEW_CASE(n, sums) case n: tile_of(t, n, sums); break;
#define MANY_CASE(n) FEW_CASE(n, 1)
#define BARE_CASE(n) case n: bare_tile_of(t, n); break;
#define EDGE_CASE(n, bare_sums)                                                                    \
    case n:                                                                                        \
        sum_tile(t, (Kind){ .rows = n, .vectors = 1, .sums = 1, .edge = true, .bare = bare_sums });\
        break;
#define FULL_EDGE_CASE(n) EDGE_CASE(n, false)
#define BARE_EDGE_CASE(n) EDGE_CASE(n, true)
// clang-format on

static void
tile(const KilnGemmTile *t)
{
    if (!t->b_offsets && kiln_gemm_has_edge(t->rows, t->cols, VW)) {
        switch (t->rows) {
            EVERY_MANY(FULL_EDGE_CASE)
        }
        return;
    }
    switch (t->rows) {
        EVERY_FEW(FEW_CASE)
        EVERY_MANY(MANY_CASE)
    }
}

static void
tile_sums(const KilnGemmTile *t)
{
    if (t->rows < KILN_GEMM_MANY_ROWS) { /* few rows keep several sums per element */
        tile(t);
        return;
    }
    if (kiln_gemm_has_edge(t->rows, t->cols, VW)) {
        switch (t->rows) {
            EVERY_MANY(BARE_EDGE_CASE)
        }
        return;
    }
    switch (t->rows) {
        EVERY_MANY(BARE_CASE)
    }
}

// clang-format off
#define NARROW_CASE(n, s)                                                                          \
    case n:                                                                                        \
        sum_tile(t, (Kind){ .rows = n, .vectors = vectors, .sums = s, .storage = storage });       \
        break;
#define PAIR_CASE(n, sums) case n: sum_pair(t, n, sums); break;
// clang-format on

/* Sums in the order of tile(), so that the bits are the same. */
ALWAYS_INLINE void
tile_narrow(const KilnGemmTile *t, const int vectors, const KilnGemmStorage storage)
{
    switch (t->rows) {
        EVERY_NARROW(NARROW_CASE)
    }
}

static void
tile_bf16(const KilnGemmTile *t)
{
    if (t->cols > VW)
        tile_narrow(t, 2, KILN_GEMM_BF16);
    else
        tile_narrow(t, 1, KILN_GEMM_BF16);
}

static void
tile_f16(const KilnGemmTile *t)
{
    if (t->cols > VW)
        tile_narrow(t, 2, KILN_GEMM_F16);
    else
        tile_narrow(t, 1, KILN_GEMM_F16);
}

#if TILE_ROWS >= 14
/* Sums in the order of tile(), so that a pair has the same bits as two tiles. Only this instruction
   set has enough registers for it. */
static void
pair(const KilnGemmTile *t)
{
    switch (t->rows) {
        EVERY_NARROW(PAIR_CASE)
    }
}
#endif

#endif
