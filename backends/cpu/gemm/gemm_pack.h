/* SPDX-License-Identifier: Apache-2.0 */
/* Finds panels and packs operands into them. A packed side holds its blocks of depth one after the
 * other. Each block holds its panels one after the other. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_PACK_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_PACK_H

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "ir/slice.h"

typedef struct {
    int64_t start, extent; /* rows or columns; start counts from the first panel of the product */
    int64_t pitch;         /* floats of one step of depth */
    int64_t offset;        /* sum of the pitches of all panels before it */
} KilnGemmPanel;

typedef struct {
    int64_t start, size;
} KilnGemmDepth;

typedef struct {
    int64_t panel, k;
} KilnGemmSpot;

/** Panel @index of @cut, which must point to rows or cols of @plan. */
KilnGemmPanel kiln_gemm_panel(const KilnGemmPlan *plan, const KilnGemmCut *cut, int64_t index);

/** The block of depth that starts at @k. */
static inline KilnGemmDepth
kiln_gemm_depth(const KilnGemmPlan *plan, int64_t k)
{
    int64_t left = plan->depth - k;
    return (KilnGemmDepth){ k, left < plan->depth_block ? left : plan->depth_block };
}

/** Offset in bytes of a panel's block of depth in a packed side. */
static inline int64_t
kiln_gemm_packed_offset(const KilnGemmCut *cut, const KilnGemmPanel *panel, KilnGemmDepth depth)
{
    return kiln_gemm_element_size(cut->storage) *
           (depth.start * cut->pitch + depth.size * panel->offset);
}

/* A column panel that needs no packing: the tile reads its rows from the source. */
typedef struct {
    const float *base; /* NULL: it must be packed */
    const int64_t *offsets;
    int64_t pitch;
} KilnGemmDirect;

/** Column panel @panel of @side in place for the block of depth at @k, if it can be read so. */
KilnGemmDirect kiln_gemm_direct(const KilnGemmPlan *plan, const KilnGemmSide *side,
                                const KilnGemmPanel *panel, int64_t k);

/** Gathers one panel of one block of depth to @dst, [depth][pitch]. */
void kiln_gemm_pack_panel(const KilnGemmPlan *plan, const KilnGemmSide *side,
                          const KilnGemmPanel *panel, KilnGemmDepth depth, float *dst);

/** Gathers the panel and block of @spot into their place in the packed side @packed. */
void kiln_gemm_pack_into(const KilnGemmPlan *plan, const KilnGemmCut *cut, const KilnGemmSide *side,
                         KilnGemmSpot spot, void *packed);

/** Packs @slice of @side (of batch item 0) into panels. @dst is the beginning of the whole packed
 * side. @cut must point to rows or cols of @plan. */
void kiln_gemm_pack_side(const KilnGemmPlan *plan, const KilnGemmCut *cut, const KilnGemmSide *side,
                         KilnSlice slice, void *dst);

#endif
