/* SPDX-License-Identifier: Apache-2.0 */
/* Floats in 28 bits without the loss of a bit. Constant weights are packed so if few rows read
 * them, because such products wait for memory. The sign and mantissa of a float have 24 bits, which
 * cannot be shortened. Its exponent has few values within a panel: 4 bits select one of 16.
 *
 * A *block* is the part of one column panel in one block of depth. It lies in groups of 8 steps;
 * steps behind the last whole group are floats. A group has one *piece* for each vector of the
 * panel. A piece is 7 vectors of 32 bits, in each of which every column has one lane:
 *
 *     codes    bits 4r … 4r + 3: code of the exponent of step r, r < 8
 *     row r    bit 31, bits 0 … 22: sign and mantissa of step r, r < 6
 *              bits 23 … 30: a third of step 6 (r < 3) or step 7: bit 31 and bits 0 … 6 (r = 0, 3);
 *              bits 7 … 14 (r = 1, 4); bits 15 … 22 (r = 2, 5)
 *
 * A piece is *raw* (8 vectors of floats) if one of its weights has none of the 16 exponents.
 * Infinities, NaNs, zeros and denormals have exponents like other floats.
 *
 * A packed operand begins with a head: for each block of depth, one entry for each panel. The size
 * of an operand depends on the weights. It can be checked without them. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_EXACT_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_EXACT_H

#include "backends/cpu/gemm/gemm_plan.h"
#include "ir/slice.h"

enum {
    KILN_GEMM_EXACT_STEPS = 8,
    KILN_GEMM_EXACT_ROWS = 6, /* of a piece, behind the codes */
    KILN_GEMM_EXACT_ALIGN = 64,
    /* Bytes to prefetch ahead in each stream. Decoding fills the processor's window with
       instructions, so that it sees few loads and waits for memory. One row by 4096 × 4096 from
       memory: half as fast without prefetching, 5 % slower with 2048 and with 6144. */
    KILN_GEMM_EXACT_AHEAD = 4096,
};

typedef struct KilnGemmExactBlock {
    uint8_t exponents[16]; /* biased, by code */
    uint32_t raw[2]; /* for each vector of the panel: bit g is set if its piece of group g is raw */
    uint32_t at;     /* offset from the head, in units of KILN_GEMM_EXACT_ALIGN bytes */
    uint32_t bytes;  /* a multiple of KILN_GEMM_EXACT_ALIGN */
} KilnGemmExactBlock;

/** Bytes of the head for the column side of @plan. */
int64_t kiln_gemm_exact_head_size(const KilnGemmPlan *plan);

/** Looks at all weights of @side on up to @threads threads and fills in @head, which must be zeros.
 * Returns the bytes of the packed operand; 0 if it saves too little. */
int64_t kiln_gemm_exact_fit(const KilnGemmPlan *plan, const KilnGemmSide *side, int threads,
                            KilnGemmExactBlock *head);

/** Packs @slice of @side behind @head, which fit() has filled in. */
void kiln_gemm_exact_pack(const KilnGemmPlan *plan, const KilnGemmSide *side, KilnSlice slice,
                          KilnGemmExactBlock *head);

/** True if the blocks of @head fill exactly the @bytes bytes that begin with @head. */
bool kiln_gemm_exact_is_sound(const KilnGemmPlan *plan, const KilnGemmExactBlock *head,
                              int64_t bytes);

/** The entry of panel @panel and of the block of depth that starts at @k. */
static inline const KilnGemmExactBlock *
kiln_gemm_exact_block(const KilnGemmPlan *plan, const KilnGemmExactBlock *head, int64_t panel,
                      int64_t k)
{
    return head + k / plan->depth_block * plan->cols.panels + panel;
}

static inline const void *
kiln_gemm_exact_data(const KilnGemmExactBlock *head, const KilnGemmExactBlock *block)
{
    return (const char *)head + (int64_t)block->at * KILN_GEMM_EXACT_ALIGN;
}

#endif
