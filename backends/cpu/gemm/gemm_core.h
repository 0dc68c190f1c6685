/* SPDX-License-Identifier: Apache-2.0 */
/* The blocked matrix product under matmul, gemm and convolution: out[rows, cols] = tail(alpha *
 * R C + beta * bias), where the row side R is broadcast into the register tile and the
 * column side C is loaded as vectors. Either side is prepacked, a strided matrix, or an image whose
 * (im2col) columns are never stored as a whole but gathered panel by panel. Private to the folder.
 *
 * Loops, from the outside: batch item and block of rows × columns (the tasks); block of depth;
 * column panel; row panel; register tile. All block bounds follow from the shape and the
 * instruction set: the sum over depth has one order whatever the number of threads. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_CORE_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_CORE_H

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/stack/tail.h"
#include "ir/slice.h"

enum {
    KILN_GEMM_BATCH_RANK = 8
};

typedef enum {
    KILN_GEMM_PACKED,  /* in panels already, by kiln_gemm_pack_side */
    KILN_GEMM_STRIDED, /* element (i, k) = base[i * stride_i + k * stride_k] */
    KILN_GEMM_IMAGE,   /* element (i, k) = base[position(i) + offsets[k]] */
} KilnGemmKind;

/* Positions of an image side: i counts through out in row-major order, innermost stride 1. */
typedef struct {
    const int64_t *offsets; /* of every k, in floats */
    int64_t out[3], pitch[2];
    int64_t channel_pitch; /* between channels: the offsets' largest regular step */
} KilnGemmImage;

typedef struct {
    KilnGemmKind kind;
    KilnGemmStorage storage; /* in 16 bits: strided only */
    const void *base;        /* 4-byte alignment needed for images only */
    int64_t stride_i, stride_k;
    KilnGemmImage image;
} KilnGemmSide;

/* How a side that is not prepacked gets into panels. */
typedef enum {
    KILN_GEMM_PACK_NEVER,
    KILN_GEMM_PACK_WHOLE, /* once, before the tasks, into shared scratch */
    KILN_GEMM_PACK_BLOCK, /* by each task, a block of depth at a time */
} KilnGemmPack;

typedef struct {
    KilnCpuIsa isa;
    int64_t rows, cols, depth, batch;
    bool rows_packed, cols_packed;
    bool staged; /* out has no unit column stride: sums are kept in scratch and stored at the end */
    bool residual;           /* the tail has one */
    KilnGemmStorage storage; /* of the column side as it comes, for which few rows keep it packed */
} KilnGemmShape;

/* One side cut into panels and blocks. */
typedef struct {
    int64_t extent, panels, blocks;
    int64_t pitch; /* of all panels together: floats for one step of depth */
    KilnGemmPack pack;
    KilnGemmStorage storage; /* of panels that are packed for all runs, else F32 */
} KilnGemmCut;

/** All block bounds of a product: a pure function of the shape and the instruction set. */
typedef struct {
    const KilnGemmKernels *kernels;
    KilnGemmCut rows, cols;
    int64_t depth, depth_block, batch;
    bool staged;
    bool kept; /* sums wait in scratch for the last block of depth: out may be the residual, which
                  is added then */
    int64_t whole_rows, whole_cols;           /* shared scratch in floats, all batch items */
    int64_t task_rows, task_cols, task_stage; /* scratch of one thread in floats */
} KilnGemmPlan;

typedef struct {
    int rank;
    int64_t dims[KILN_GEMM_BATCH_RANK];
    int64_t rows[KILN_GEMM_BATCH_RANK], cols[KILN_GEMM_BATCH_RANK]; /* strides in floats */
    int64_t out[KILN_GEMM_BATCH_RANK], bias[KILN_GEMM_BATCH_RANK];
    int64_t residual[KILN_GEMM_BATCH_RANK];
} KilnGemmBatch;

typedef struct {
    const KilnGemmPlan *plan;
    KilnGemmSide rows, cols;
    float *out;
    int64_t out_row, out_col;
    const float *bias; /* or NULL */
    int64_t bias_row, bias_col;
    const float *residual; /* or NULL; each product laid out as out, may be out */
    float alpha, beta;
    KilnCpuTail tail;
    KilnGemmBatch batch;
    float *scratch; /* kiln_gemm_scratch_size bytes, 64-byte aligned */
    int threads;
} KilnGemmCall;

/**
 * Estimated cost in quarter cycles, to choose which operand is vectorised: vectors that are only
 * partly used, and storing staged sums, are what differs.
 */
double kiln_gemm_cost(const KilnGemmShape *shape);

KilnGemmPlan kiln_gemm_plan(const KilnGemmShape *shape);

/** Bytes of scratch that a call on @threads threads needs. */
int64_t kiln_gemm_scratch_size(const KilnGemmPlan *plan, int threads);

/** Elements of one side in panels: floats, as a rule. */
int64_t kiln_gemm_packed_floats(const KilnGemmPlan *plan, const KilnGemmCut *cut);

/** Bring @slice of @side (of batch item 0) into panels at @dst, where the whole begins; @cut is
 * plan->rows or plan->cols. */
void kiln_gemm_pack_side(const KilnGemmPlan *plan, const KilnGemmCut *cut, const KilnGemmSide *side,
                         KilnSlice slice, void *dst);

void kiln_gemm_run(const KilnGemmCall *call);

/** Sums with the columns of a row side by side, on their way to an output whose rows are: out[i + j
 * * out_col] = clip(alpha * sums[i * sums_pitch + j] + beta * bias[j * bias_col] + residual), which
 * is laid out as out and may be it. */
typedef struct {
    const KilnGemmKernels *kernels;
    const float *sums;
    int64_t sums_pitch, rows, cols;
    float *out;
    int64_t out_col;
    const float *bias; /* or NULL */
    int64_t bias_col;
    const float *residual; /* or NULL */
    float alpha, beta;
    const KilnCpuTail *tail; /* its bounds only */
} KilnGemmTurn;
void kiln_gemm_store_turned(const KilnGemmTurn *turn);

#endif
