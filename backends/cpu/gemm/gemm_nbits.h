/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of 2, 4 or 8 bits with a scale and a zero point for each block along the depth. They stay
 * packed in memory. Few rows convert them in registers. More rows convert a panel at a time to
 * floats in scratch, which the tiles of floats read. Both get the same weights, to the bit:
 *
 *     weight = (number - zero point) × scale        each step rounded to f32
 *
 * A packed operand holds its column panels one after the other. A panel holds its blocks one after
 * the other. Each part of a block has one element for each column of the panel:
 *
 *     scales         f32
 *     zero points    f32 or u8, or nothing: then they are the middle of the range
 *     words          32 bits, with the numbers of 32 / bits steps, the first in the lowest bits
 *
 * Zeros fill up the last word of a block and the columns behind the last one. The last block has
 * all its steps, also those behind the depth. So a place depends on the extents of the weights and
 * on the width of a panel alone. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_NBITS_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_NBITS_H

#include "backends/cpu/extents.h"

typedef enum {
    KILN_GEMM_ZEROS_MIDDLE,
    KILN_GEMM_ZEROS_U8,
    KILN_GEMM_ZEROS_F32
} KilnGemmZeros;

typedef struct KilnGemmNbits {
    int64_t block; /* steps of depth with one scale */
    int bits;
    KilnGemmZeros zeros;
} KilnGemmNbits;

enum {
    KILN_GEMM_WORD_BITS = 32,
    /* Bytes to prefetch ahead: about a panel's part of a block of depth. That part is read after
       those of the other panels of the task, which fit the second-level cache. */
    KILN_GEMM_NBITS_AHEAD = 4096,
};

/** Weights as MatMulNBits has them, at any byte address. */
typedef struct {
    const uint8_t *numbers; /* [columns, blocks, bytes of a block] */
    const char *scales;     /* [columns, blocks] of f32 */
    const char *zeros;      /* f32 like scales, or rows of bytes with numbers; NULL: none */
} KilnGemmNbitsSource;

/** Bytes of a block before its words, for one column. */
static inline int64_t
kiln_gemm_nbits_head(const KilnGemmNbits *n)
{
    return 4 + (n->zeros == KILN_GEMM_ZEROS_F32 ? 4 : n->zeros == KILN_GEMM_ZEROS_U8 ? 1 : 0);
}

/** Bytes of a block for one column. */
static inline int64_t
kiln_gemm_nbits_block(const KilnGemmNbits *n)
{
    return kiln_gemm_nbits_head(n) + 4 * ceil_div(n->block * n->bits, KILN_GEMM_WORD_BITS);
}

/** Bytes of all blocks of a depth for one column. */
static inline int64_t
kiln_gemm_nbits_column(const KilnGemmNbits *n, int64_t depth)
{
    return kiln_gemm_nbits_block(n) * ceil_div(depth, n->block);
}

#endif
