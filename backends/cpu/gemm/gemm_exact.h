/* SPDX-License-Identifier: Apache-2.0 */
/* Floats in 28 bits, and not one bit lost: how constant weights are packed that few rows read, for
 * such products wait for memory. A float has 24 bits of sign and mantissa that nothing shortens,
 * but within a panel its exponent has few values: 4 bits say which of 16.
 *
 * A *block* is what one column panel holds of one block of depth. It lies in groups of 8 steps, a
 * group in as many *pieces* as the panel has vectors; steps behind the last whole group are floats.
 * A piece is 7 vectors of 32 bits, in each of which every column has its lane:
 *
 *     codes    bits 4r … 4r + 3: which exponent step r has, r < 8
 *     row r    bit 31, bits 0 … 22: sign and mantissa of step r, r < 6
 *              bits 23 … 30: r < 3: a third of step 6, else of step 7: bit 31 and bits 0 … 6;
 *              bits 7 … 14; bits 15 … 22
 *
 * A piece in which a weight has none of the 16 exponents is *raw*: 8 vectors of floats. Infinities
 * and NaNs have an exponent like any other, zeros and denormals too.
 *
 * A packed operand begins with what describes its blocks, panel after panel and block of depth
 * after block of depth. Its size depends on the weights, and it can be checked without them. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_EXACT_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_EXACT_H

#include "backends/cpu/gemm/gemm_plan.h"
#include "ir/slice.h"

enum {
    KILN_GEMM_EXACT_STEPS = 8,
    KILN_GEMM_EXACT_ROWS = 6, /* of a piece, behind the codes */
    KILN_GEMM_EXACT_ALIGN = 64,
    /* What is decoded does not fit the processor's window as plain loads do: without requests this
       far ahead in each stream it would wait for each few lines. One row by 4096 × 4096 from
       memory: half as fast without, 5 % slower with 2048 and with 6144. */
    KILN_GEMM_EXACT_AHEAD = 4096,
};

typedef struct KilnGemmExactBlock {
    uint8_t exponents[16]; /* biased, by code */
    uint32_t raw[2];       /* of the panel's vectors: bit per group, set where the piece is raw */
    uint32_t at;           /* from the head on, in units of KILN_GEMM_EXACT_ALIGN bytes */
    uint32_t bytes;        /* whole units, too */
} KilnGemmExactBlock;

/** Bytes of what describes the blocks of the column side of @plan. */
int64_t kiln_gemm_exact_head_size(const KilnGemmPlan *plan);

/** Looks at all weights of @side on up to @threads threads and describes the blocks at @head, zeros
 * so far. Returns how many bytes the packed operand has; 0 where that is not worth while. */
int64_t kiln_gemm_exact_fit(const KilnGemmPlan *plan, const KilnGemmSide *side, int threads,
                            KilnGemmExactBlock *head);

/** Packs a @slice of @side behind @head, as fit() has described. */
void kiln_gemm_exact_pack(const KilnGemmPlan *plan, const KilnGemmSide *side, KilnSlice slice,
                          KilnGemmExactBlock *head);

/** True where @head, which @bytes bytes begin with, describes blocks that fill just these. */
bool kiln_gemm_exact_is_sound(const KilnGemmPlan *plan, const KilnGemmExactBlock *head,
                              int64_t bytes);

/** What describes the block of panel @panel and of the depth from @k on. */
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
