/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of number_tile.h in plain C, so that the compiler can vectorise them. Each instruction
 * set has a file that includes this once, and defines TILES, the name of the table. */
#ifndef KILN_BACKENDS_CPU_GEMM_NUMBER_TILE_LOOPS_H
#define KILN_BACKENDS_CPU_GEMM_NUMBER_TILE_LOOPS_H

#include "backends/cpu/gemm/number_tile.h"
#include "backends/cpu/simd/unrolled.h"

#include <string.h>

/* The columns are vectors, not as many numbers. */
#if defined(__clang__)
#define AS_VECTORS
#else
#define AS_VECTORS _Pragma("GCC unroll 1")
#endif

/* As many rows as there are registers for. */
enum {
#if defined(__AVX512F__)
    TILE_ROWS = 8,
#else
    TILE_ROWS = 4,
#endif
};

/* A row that is not there repeats the last one, and is not stored. */
#define TILE(name, T)                                                                              \
    static void name(const KilnCpuNumberTile *t)                                                   \
    {                                                                                              \
        enum {                                                                                     \
            N = KILN_CPU_TILE_LINE / sizeof(T)                                                     \
        };                                                                                         \
        const T *a[TILE_ROWS], *b = t->panel;                                                      \
        T sum[TILE_ROWS][N] = { { 0 } };                                                           \
        for (int64_t r = 0; r < TILE_ROWS; r++)                                                    \
            a[r] = (const T *)t->a + (r < t->rows ? r : t->rows - 1) * t->a_row;                   \
        for (int64_t k = 0, at = 0; k < t->depth; k++, at += t->a_column, b += N) {                \
            AS_VECTORS                                                                             \
            for (int j = 0; j < N; j++) {                                                          \
                UNROLLED                                                                           \
                for (int r = 0; r < TILE_ROWS; r++)                                                \
                    sum[r][j] += a[r][at] * b[j];                                                  \
            }                                                                                      \
        }                                                                                          \
        memcpy(t->out, sum, (size_t)t->rows * sizeof sum[0]);                                      \
    }
TILE(tile_f64, double)
TILE(tile_u32, uint32_t)
TILE(tile_u64, uint64_t)
#undef TILE

const KilnCpuNumberTiles TILES = {
    .f64 = tile_f64, .u32 = tile_u32, .u64 = tile_u64, .rows = TILE_ROWS
};

#endif
