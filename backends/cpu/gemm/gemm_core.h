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
    const float *residual; /* or NULL; each product laid out as out, may be out */
    float alpha, beta;
    KilnCpuTail tail;
    KilnGemmBatch batch;
    float *scratch; /* kiln_gemm_scratch_size bytes, 64-byte aligned */
    int threads;
} KilnGemmCall;

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
