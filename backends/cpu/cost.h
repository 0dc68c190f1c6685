/* SPDX-License-Identifier: Apache-2.0 */
/* What own kernels take: the sum of a few terms that are counted from the shape, each times a cost
 * that was fitted to measurements (costs.h, without AVX-512 costs_avx2.h). Choosing an algorithm,
 * or a vendor, compares such sums. */
#ifndef KILN_BACKENDS_CPU_COST_H
#define KILN_BACKENDS_CPU_COST_H

#include "backends/cpu/conv/conv_depthwise.h"
#include "backends/cpu/conv/conv_winograd.h"
#include "backends/cpu/gemm/gemm.h"
#include "ir/target.h"

/** Every model: name, number of terms. */
#define KILN_CPU_COST_KINDS(X)                                                                     \
    X(direct, 3)    /* convolution; kernels of more than one tap */                                \
    X(pointwise, 3) /* of one */                                                                   \
    X(taps, 4)      /* products of single taps */                                                  \
    X(depthwise, 6)                                                                                \
    X(transposed, 4)                                                                               \
    X(winograd, 5)                                                                                 \
    X(pool, 6)                                                                                     \
    X(global_pool, 3)                                                                              \
    X(matmul, 4)                                                                                   \
    X(softmax, 3)                                                                                  \
    X(reduction, 3)                                                                                \
    X(layer_normalization, 3)                                                                      \
    X(lstm, 4)                                                                                     \
    X(computed, 1) /* operations of whatever has no model, where those take longer than */         \
    X(moved, 2)    /* its bytes */                                                                 \
    X(tail, 2)     /* on the way out of a product */                                               \
    X(relayout, 2) /* another layout of a picture */

typedef enum {
#define KIND(name, n) KILN_CPU_COST_##name,
    KILN_CPU_COST_KINDS(KIND)
#undef KIND
    KILN_CPU_N_COSTS
} KilnCpuCostKind;

enum {
    KILN_CPU_TERMS = 6, /* most of all */
};

/** Microseconds on one thread. */
double kiln_cpu_cost(KilnCpuCostKind kind, const double terms[KILN_CPU_TERMS]);

/** The terms of a direct convolution of any kind, which is returned: the products, in units of
 * kiln_gemm_cost(); the bytes that are read and written once; and the call. By taps: what surrounds
 * the products, and the bytes of the weights, come behind them. */
KilnCpuCostKind kiln_direct_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

/** Vector products of 3 × 3 kernels, and of others; rows of the result; planes; bytes; the call. */
void kiln_depthwise_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

/** Of a transposed convolution: the products, in units of kiln_gemm_cost(); the bytes of what every
 * position adds around it, and of the result; and the call. */
void kiln_transposed_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

/** The products, in units of kiln_gemm_cost(); tiles times channels of the input, and of the
 * result; the bytes of the weights, which no cache keeps from one round to the next; and the call.
 */
void kiln_winograd_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS]);

/** Extents of a pool, missing dims with extent 1. */
typedef struct {
    int64_t planes, in[3], out[3], kernel[3];
    int64_t edges; /* windows of a row that hang over its ends */
} KilnCpuPoolShape;
/** Of @out windows that reach over @reach positions, those that do not lie in a row of @in. */
int64_t kiln_pool_edges(int64_t in, int64_t out, int64_t reach, int64_t stride, int64_t pad);
/** Vectors of rows that are folded first, rows of the result, vectors of taps, taps of windows that
 * are folded one by one, the call, and rows of the result that are made of rows folded first. */
void kiln_pool_terms(const KilnCpuPoolShape *shape, double terms[KILN_CPU_TERMS]);
/** Bytes, planes, and the call. */
void kiln_global_pool_terms(const KilnCpuPoolShape *shape, double terms[KILN_CPU_TERMS]);

/** The products, in units of kiln_gemm_cost(); the bytes of A and of the result, of B, and the
 * call. */
void kiln_matmul_terms(const KilnCpuGemm *gemm, double terms[KILN_CPU_TERMS]);

/** Of what works along rows: elements, rows, and the call. */
void kiln_rows_terms(int64_t rows, int64_t columns, double terms[KILN_CPU_TERMS]);

/** Operations. */
void kiln_computed_terms(double flops, double terms[KILN_CPU_TERMS]);
/** Bytes that are read and written, and the call. */
void kiln_moved_terms(double bytes, double terms[KILN_CPU_TERMS]);
/** Operations, and bytes of a residual. */
void kiln_cpu_tail_terms(double flops, double bytes, double terms[KILN_CPU_TERMS]);
/** Bytes of the value, and the call. */
void kiln_relayout_terms(double bytes, double terms[KILN_CPU_TERMS]);
/** What they cost, for passes to weigh. */
KilnRates kiln_cpu_rates(void);

/** The products with inputs, and with states, steps, and the call. */
void kiln_lstm_terms(int64_t steps, int64_t batch, int64_t in, int64_t hidden,
                     double terms[KILN_CPU_TERMS]);

#endif
