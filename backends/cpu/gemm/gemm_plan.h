/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of a blocked product, and the plan that cuts them into panels and blocks. Private
 * to the folder. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_PLAN_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_PLAN_H

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/isa.h"

typedef enum {
    KILN_GEMM_PACKED,  /* in panels already, by kiln_gemm_pack_side */
    KILN_GEMM_STRIDED, /* element (i, k) = base[i * stride_i + k * stride_k] */
    KILN_GEMM_IMAGE,   /* element (i, k) = base[position(i) + offsets[k]] */
    KILN_GEMM_NUMBERS, /* of few bits, packed in panels by kiln_gemm_nbits_pack */
} KilnGemmKind;

/* Positions of an image side: i counts through out in row-major order, innermost stride 1. */
typedef struct {
    const int64_t *offsets; /* of every k, in floats */
    int64_t out[3], pitch[2];
    int64_t channel_pitch; /* floats between channels: the largest regular step of the offsets */
} KilnGemmImage;

typedef struct {
    KilnGemmKind kind;
    KilnGemmStorage storage; /* 16 bits: STRIDED only */
    const void *base;        /* IMAGE: 4-byte aligned */
    int64_t stride_i, stride_k;
    KilnGemmImage image;
    const struct KilnGemmNbits *nbits; /* NUMBERS, or PACKED with storage NBITS */
} KilnGemmSide;

/* How a side that is not prepacked gets into panels. */
typedef enum {
    KILN_GEMM_PACK_NEVER,
    KILN_GEMM_PACK_WHOLE, /* once, before the tasks, into shared scratch */
    KILN_GEMM_PACK_BLOCK, /* by each task, a block of depth at a time */
} KilnGemmPack;

/* Some panels of a packed side, which are those of a product. */
typedef struct {
    int64_t first, n; /* n is 0: all */
} KilnGemmPart;

typedef struct {
    KilnCpuIsa isa;
    int64_t rows, cols, depth, batch;
    bool rows_packed, cols_packed;
    KilnGemmPart rows_part, cols_part; /* of packed sides; rows and cols count all panels */
    bool staged; /* out has no unit column stride: sums are kept in scratch and stored at the end */
    bool residual;           /* the tail has one */
    KilnGemmStorage storage; /* of prepacked column panels */
} KilnGemmShape;

/* One side cut into panels and blocks. */
typedef struct {
    int64_t extent, panels, blocks;
    int64_t first, all_panels, all; /* the first panel among all of a packed side, and how many rows
                                       or columns these have */
    int64_t pitch;                  /* of all panels together: floats for one step of depth */
    KilnGemmPack pack;
    KilnGemmStorage storage; /* of prepacked panels; else F32 */
} KilnGemmCut;

/** All block bounds of a product: a pure function of the shape and the instruction set. */
typedef struct {
    const KilnGemmKernels *kernels;
    KilnGemmCut rows, cols;
    int64_t depth, depth_block, batch;
    bool staged;
    bool kept; /* out may be the residual: sums stay in scratch until the last block of depth */
    int64_t whole_rows, whole_cols;           /* shared scratch in floats, all batch items */
    int64_t task_rows, task_cols, task_stage; /* scratch of one thread in floats */
} KilnGemmPlan;

/** Estimated cost in quarter cycles, for the choice which operand is vectorised. The choices differ
 * in partly used vectors and in the cost of storing staged sums. */
double kiln_gemm_cost(const KilnGemmShape *shape);

KilnGemmPlan kiln_gemm_plan(const KilnGemmShape *shape);

/** Bytes of scratch that a call on @threads threads needs. */
int64_t kiln_gemm_scratch_size(const KilnGemmPlan *plan, int threads);

/** Bytes that are not less than kiln_gemm_scratch_size() of @plan, nor of a plan whose shape has
 * fewer rows or columns on sides that are not packed, and else is the same. */
int64_t kiln_gemm_scratch_bound(const KilnGemmPlan *plan, int threads);

/** Elements of one side in panels: floats, as a rule. */
int64_t kiln_gemm_packed_floats(const KilnGemmPlan *plan, const KilnGemmCut *cut);

#endif
