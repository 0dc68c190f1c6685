/* SPDX-License-Identifier: Apache-2.0 */
/* The blocked matrix product under matmul, gemm and convolution: out[rows, cols] =
 * tail(alpha * R C + beta * bias). Elements of the row side R are broadcast into the register tile;
 * the column side C is loaded as vectors. A side is prepacked, a strided matrix, or an image, whose
 * (im2col) columns are gathered panel by panel and never stored as a whole. Private to the folder.
 *
 * Loops, from the outside: batch item and block of rows × columns (the tasks); block of depth;
 * column panel; row panel; register tile. All block bounds follow from the shape and the
 * instruction set. So the number of threads does not change the order of a sum over depth. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_CORE_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_CORE_H

#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "backends/cpu/stack/tail.h"

enum {
    KILN_GEMM_BATCH_RANK = 8
};

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
    const float *residual; /* or NULL; each product has the layout of out; may be out */
    float alpha, beta;
    KilnCpuTail tail;
    KilnGemmBatch batch;
    float *scratch; /* kiln_gemm_scratch_size bytes, 64-byte aligned */
    int threads;
} KilnGemmCall;

void kiln_gemm_run(const KilnGemmCall *call);

/** Stores sums whose columns lie side by side to an output whose rows lie side by side:
 * out[i + j * out_col] = clip(alpha * sums[i * sums_pitch + j] + beta * bias[j * bias_col] +
 * residual). The residual has the layout of out and may be out. */
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
    const KilnCpuTail *tail; /* only its bounds are used */
} KilnGemmTurn;
void kiln_gemm_store_turned(const KilnGemmTurn *turn);

#endif
