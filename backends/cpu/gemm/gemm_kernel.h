/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the blocked matrix product that each instruction set implements: register tiles,
 * and two ways to pack an operand into panels. Private to the cpu backend.
 *
 * A *row panel* holds up to max_rows rows as [depth][rows], without padding. Its elements are
 * broadcast. A *column panel* holds up to max_cols columns as [depth][pitch]. The pitch is a
 * multiple of the vector, with zeros behind the last column. Its elements are loaded as vectors. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_KERNEL_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_KERNEL_H

#include "backends/cpu/isa.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_GEMM_MAX_ROWS = 14,   /* rows of the largest tile of any instruction set */
    KILN_GEMM_MAX_COLS = 32,   /* columns of the largest tile */
    KILN_GEMM_MAX_DEPTH = 256, /* depth of one block of K */
    KILN_GEMM_MANY_ROWS = 4,   /* a tile with at least so many rows has one sum per element */
    KILN_GEMM_NARROW_ROWS = 4, /* more rows reuse an element of b: it is packed as a float */
};

/* How a side is stored. EXACT and NBITS are for packed sides (gemm_exact.h, gemm_nbits.h). */
typedef enum {
    KILN_GEMM_F32,
    KILN_GEMM_BF16, /* becomes floats when it is loaded, as F16 does */
    KILN_GEMM_F16,
    KILN_GEMM_EXACT, /* floats in 28 bits, for few rows */
    KILN_GEMM_NBITS, /* numbers of few bits in blocks; `unpack` makes floats for many rows */
    KILN_GEMM_STORAGES
} KilnGemmStorage;

static inline int64_t
kiln_gemm_element_size(KilnGemmStorage storage)
{
    return storage == KILN_GEMM_BF16 || storage == KILN_GEMM_F16 ? 2 : 4;
}

/* True if one column follows whole vectors of @cols and @rows are many. A vector of rows sums that
   column with one multiply-add per step of depth. A vector of columns would take one per row. */
static inline bool
kiln_gemm_has_edge(int64_t rows, int64_t cols, int64_t vector)
{
    return rows >= KILN_GEMM_MANY_ROWS && cols > vector && cols % vector == 1;
}

struct KilnGemmExactBlock;
struct KilnGemmNbits;

/* One tile: out[rows, cols] (+)= alpha * a b, with bias, residual and bounds. */
typedef struct {
    const float *a;     /* row panel, [depth][rows] */
    const void *b;      /* column panel; its rows lie b_pitch apart, or at offsets */
    const void *beside; /* pairs: the column panel behind b, with the same pitch */
    const struct KilnGemmExactBlock *b_block,
        *beside_block; /* how b and beside are stored, EXACT */
    const struct KilnGemmNbits
        *nbits;               /* how b is stored, NBITS: then b is the panel from step 0 on */
    int64_t k;                /* NBITS: the first step of depth */
    const int64_t *b_offsets; /* or NULL; if set, cols is a multiple of the vector */
    const void *soon;         /* needed after this tile: each step prefetches a cache line of it */
    const void *soon_beside;  /* pairs, EXACT: the same for beside */
    float *out;
    int64_t depth, b_pitch, out_pitch;
    int64_t rows, cols; /* valid extents; cols may be less than the panel's pitch */
    bool first, last;   /* block of K: the first adds the bias, the last applies the tail */
    float alpha, beta;  /* factor of the product, factor of the bias */
    float lo, hi;
    const float *bias; /* or NULL; column stride 0 or 1 */
    int64_t bias_row, bias_col;
    const float *residual; /* or NULL; has the strides of out; may be out itself */
} KilnGemmTile;

/* The tile that stores the sums of a pair's second panel, which begins at column @col. */
static inline KilnGemmTile
kiln_gemm_tile_beside(const KilnGemmTile *pair, int64_t col)
{
    KilnGemmTile tile = *pair;
    tile.cols -= col;
    tile.out += col;
    if (tile.bias)
        tile.bias += col * tile.bias_col;
    if (tile.residual)
        tile.residual += col;
    return tile;
}

/* A piece of a panel's row: len floats go to lane at. src counts floats from the row's start. */
typedef struct {
    int64_t src;
    int32_t at, len;
} KilnGemmRun;

/* Panel row k = runs of floats at src + offsets[k], or at src + k * stride without offsets. The
   runs follow each other from lane 0. Lanes behind the last run become zero. */
typedef struct {
    float *dst;
    int64_t pitch, depth;
    const void *src; /* may be misaligned */
    const int64_t *offsets;
    int64_t stride;
    int n_runs;
    KilnGemmRun runs[KILN_GEMM_MAX_COLS];
} KilnGemmCopy;

/* Panel element (k, i) = src[i * stride + k] for i < lanes. Lanes behind them become zero. */
typedef struct {
    float *dst;
    int64_t pitch, depth, lanes;
    const void *src; /* may be misaligned */
    int64_t stride;
} KilnGemmTranspose;

/* A panel of numbers of few bits as floats: dst[depth][pitch] = steps k … of the panel at src. */
typedef struct {
    float *dst;
    const void *src; /* the panel from step 0 on */
    const struct KilnGemmNbits *nbits;
    int64_t pitch, k, depth;
} KilnGemmUnpack;

/* out[i] = clip((alpha * sums[i] + bias) + residual[i]) for i < n. bias includes its factor. */
typedef struct {
    float *out;
    const float *sums;
    const float *residual; /* or NULL; may be out */
    int64_t n;
    float alpha, bias, lo, hi;
} KilnGemmFinish;

typedef struct {
    int64_t vector, max_rows, max_cols; /* in floats; max_cols = 2 * vector */
    int64_t pair_rows;                  /* of the largest pair; 0: there are no pairs */
    /* By storage of b. All except F32 have up to KILN_GEMM_NARROW_ROWS rows and no offsets. */
    void (*tile[KILN_GEMM_STORAGES])(const KilnGemmTile *tile);
    /* The same for bare sums: alpha 1, no bias, residual or bounds, no offsets of b. Rows of out
       have room for whole vectors. The first block of K stores the sums, others add to out. */
    void (*sums)(const KilnGemmTile *tile);
    /* Two whole panels; cols counts both. NULL for a storage without pairs. */
    void (*pair[KILN_GEMM_STORAGES])(const KilnGemmTile *tile);
    void (*copy)(const KilnGemmCopy *copy);
    void (*transpose)(const KilnGemmTranspose *transpose);
    void (*finish)(const KilnGemmFinish *finish);
    void (*unpack)(const KilnGemmUnpack *unpack);
} KilnGemmKernels;

/* The columns of the next tile, if @left remain. An edge column goes with the vector before it. */
static inline int64_t
kiln_gemm_step(const KilnGemmKernels *kernels, int64_t left)
{
    int64_t step = left == kernels->max_cols + 1 ? kernels->vector : kernels->max_cols;
    return left < step ? left : step;
}

static inline int64_t
kiln_gemm_copy_offset(const KilnGemmCopy *copy, int64_t k)
{
    return copy->offsets ? copy->offsets[k] : k * copy->stride;
}

extern const KilnGemmKernels kiln_gemm_kernels_portable;
#if defined(__x86_64__)
extern const KilnGemmKernels kiln_gemm_kernels_avx2;
extern const KilnGemmKernels kiln_gemm_kernels_avx512;
#endif

/** Returns the kernels of @isa, which must be supported. AUTO is the best of this machine. */
const KilnGemmKernels *kiln_gemm_kernels(KilnCpuIsa isa);

#endif
