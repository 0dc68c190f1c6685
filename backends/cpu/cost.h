/* SPDX-License-Identifier: Apache-2.0 */
/* Estimated time of the kernels of this backend: a sum of terms, each times a cost. The header of
 * an algorithm lists its terms in order; "the call" counts 1. Costs are fitted to measurements:
 * costs.h, or costs_avx2.h without AVX-512. Passes compare such sums when they choose an algorithm
 * or a vendor. */
#ifndef KILN_BACKENDS_CPU_COST_H
#define KILN_BACKENDS_CPU_COST_H

#include "ir/target.h"

/** Every model: name, number of terms. */
#define KILN_CPU_COST_KINDS(X)                                                                     \
    X(direct, 3)    /* convolution with more than one tap */                                       \
    X(pointwise, 3) /* convolution with one tap */                                                 \
    X(taps, 4)      /* a product for each tap */                                                   \
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
    X(computed, 1) /* kernels without a model: their operations */                                 \
    X(moved, 2)    /* kernels without a model: their bytes; the longer of both counts */           \
    X(tail, 2)     /* applied to the result of a product */                                        \
    X(relayout, 2) /* converts an image to another layout */

typedef enum {
#define KIND(name, n) KILN_CPU_COST_##name,
    KILN_CPU_COST_KINDS(KIND)
#undef KIND
    KILN_CPU_N_COSTS
} KilnCpuCostKind;

enum {
    KILN_CPU_TERMS = 6, /* the most terms of any kind */
};

/** Microseconds on one thread. */
double kiln_cpu_cost(KilnCpuCostKind kind, const double terms[KILN_CPU_TERMS]);

static inline void
kiln_cpu_set_terms(double terms[KILN_CPU_TERMS], double first, double second, double third)
{
    for (int i = 3; i < KILN_CPU_TERMS; i++)
        terms[i] = 0;
    terms[0] = first;
    terms[1] = second;
    terms[2] = third;
}

/** Terms of kernels that work along rows: elements; rows; the call. */
void kiln_rows_terms(int64_t rows, int64_t columns, double terms[KILN_CPU_TERMS]);

/** Terms: operations. */
void kiln_computed_terms(double flops, double terms[KILN_CPU_TERMS]);
/** Terms: bytes read and written; the call. */
void kiln_moved_terms(double bytes, double terms[KILN_CPU_TERMS]);
/** Terms: operations; bytes of a residual. */
void kiln_cpu_tail_terms(double flops, double bytes, double terms[KILN_CPU_TERMS]);
/** Terms: bytes of the value; the call. */
void kiln_relayout_terms(double bytes, double terms[KILN_CPU_TERMS]);
/** The fitted costs of the last four kinds, for passes to compare. */
KilnRates kiln_cpu_rates(void);

#endif
