/* SPDX-License-Identifier: Apache-2.0 */
/* Where panels lie, and how operands get into them. A packed side holds block after block of depth,
 * in each block panel after panel. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_PACK_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_PACK_H

#include "backends/cpu/gemm/gemm_plan.h"
#include "ir/slice.h"

typedef struct {
    int64_t start, extent; /* rows or columns */
    int64_t pitch;         /* floats of one step of depth */
    int64_t offset;        /* pitches of the panels in front of it */
} KilnGemmPanel;

typedef struct {
    int64_t start, size;
} KilnGemmDepth;

typedef struct {
    int64_t panel, k;
} KilnGemmSpot;

/** Panel @index of @cut, which is @plan's rows or cols itself. */
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

/* A column panel that needs no packing: its rows lie in the source as the tile wants them. */
typedef struct {
    const float *base; /* NULL where it must be packed */
    const int64_t *offsets;
    int64_t pitch;
} KilnGemmDirect;

/** Whether column panel @panel of @side can be read in place for the block of depth at @k. */
KilnGemmDirect kiln_gemm_direct(const KilnGemmPlan *plan, const KilnGemmSide *side,
                                const KilnGemmPanel *panel, int64_t k);

/** Gather one panel for one block of depth at @dst, [depth][pitch]. */
void kiln_gemm_pack_panel(const KilnGemmPlan *plan, const KilnGemmSide *side,
                          const KilnGemmPanel *panel, KilnGemmDepth depth, float *dst);

/** The same, to its place in the packed side @packed. */
void kiln_gemm_pack_into(const KilnGemmPlan *plan, const KilnGemmCut *cut, const KilnGemmSide *side,
                         KilnGemmSpot spot, void *packed);

/** Bring @slice of @side (of batch item 0) into panels at @dst, where the whole begins; @cut is
 * plan->rows or plan->cols. */
void kiln_gemm_pack_side(const KilnGemmPlan *plan, const KilnGemmCut *cut, const KilnGemmSide *side,
                         KilnSlice slice, void *dst);

#endif
