/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of number_tile.h in plain C, so that the compiler can vectorise them. Each instruction
 * set has a file that includes this once, and defines TILES, the name of the table. */
#ifndef KILN_BACKENDS_CPU_GEMM_NUMBER_TILE_LOOPS_H
#define KILN_BACKENDS_CPU_GEMM_NUMBER_TILE_LOOPS_H

#include "backends/cpu/gemm/number_tile.h"

#include <string.h>

/* Sixteen columns are vectors, not as many numbers. */
#if defined(__clang__)
#define AS_VECTORS
#else
#define AS_VECTORS _Pragma("GCC unroll 1")
#endif

/* A row that is not there repeats the last one, and is not stored. */
#define TILE(name, T)                                                                              \
    static void name(const KilnCpuNumberTile *t)                                                   \
    {                                                                                              \
        enum {                                                                                     \
            N = KILN_CPU_TILE_COLUMNS                                                              \
        };                                                                                         \
        const T *a[KILN_CPU_TILE_ROWS], *b = t->panel;                                             \
        T sum[KILN_CPU_TILE_ROWS][N] = { { 0 } };                                                  \
        for (int64_t r = 0; r < KILN_CPU_TILE_ROWS; r++)                                           \
            a[r] = (const T *)t->a + (r < t->rows ? r : t->rows - 1) * t->a_row;                   \
        for (int64_t k = 0; k < t->depth; k++, b += N) {                                           \
            const T x0 = a[0][k * t->a_column], x1 = a[1][k * t->a_column];                        \
            const T x2 = a[2][k * t->a_column], x3 = a[3][k * t->a_column];                        \
            AS_VECTORS                                                                             \
            for (int j = 0; j < N; j++) {                                                          \
                sum[0][j] += x0 * b[j];                                                            \
                sum[1][j] += x1 * b[j];                                                            \
                sum[2][j] += x2 * b[j];                                                            \
                sum[3][j] += x3 * b[j];                                                            \
            }                                                                                      \
        }                                                                                          \
        memcpy(t->out, sum, (size_t)t->rows * sizeof sum[0]);                                      \
    }
TILE(tile_f64, double)
TILE(tile_u32, uint32_t)
TILE(tile_u64, uint64_t)
#undef TILE

const KilnCpuNumberTiles TILES = { .f64 = tile_f64, .u32 = tile_u32, .u64 = tile_u64 };

#endif
