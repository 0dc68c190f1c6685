/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of products of f64 and of integers of 32 and 64 bits, which wrap, per instruction set. A
 * sum runs over the inner dim in order, without fused operations: every instruction set has the
 * same bits. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_GEMM_NUMBER_TILE_H
#define KILN_BACKENDS_CPU_GEMM_NUMBER_TILE_H

#include "backends/cpu/isa.h"

#include <stdint.h>

enum {
    KILN_CPU_TILE_ROWS = 8,  /* at most */
    KILN_CPU_TILE_LINE = 64, /* bytes of a row */
};

/* Elements from @a, with these distances between rows and between columns. The right operand is a
 * panel, [depth][columns]. @rows of the rows are there; the result is [rows][columns]. */
typedef struct {
    const void *a, *panel;
    void *out;
    int64_t a_row, a_column, depth, rows;
} KilnCpuNumberTile;

typedef struct {
    void (*f64)(const KilnCpuNumberTile *tile);
    void (*u32)(const KilnCpuNumberTile *tile);
    void (*u64)(const KilnCpuNumberTile *tile);
    int64_t rows; /* of a tile */
} KilnCpuNumberTiles;

extern const KilnCpuNumberTiles kiln_cpu_number_tiles_portable;
#if defined(__x86_64__)
extern const KilnCpuNumberTiles kiln_cpu_number_tiles_avx2;
extern const KilnCpuNumberTiles kiln_cpu_number_tiles_avx512;
#endif

/** Returns the tiles of the best instruction set. */
static inline const KilnCpuNumberTiles *
kiln_cpu_number_tiles(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_number_tiles);
}

#endif
