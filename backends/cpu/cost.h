/* SPDX-License-Identifier: Apache-2.0 */
/* How long own kernels take: the sum of a few terms, each times a cost. The header of an algorithm
 * says how its terms are counted from the shape. Costs are fitted to measurements: costs.h, and
 * costs_avx2.h where there is no AVX-512. The choice of an algorithm, or of a vendor, compares such
 * sums. */
#ifndef KILN_BACKENDS_CPU_COST_H
#define KILN_BACKENDS_CPU_COST_H

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

static inline void
kiln_cpu_set_terms(double terms[KILN_CPU_TERMS], double first, double second, double third)
{
    for (int i = 3; i < KILN_CPU_TERMS; i++)
        terms[i] = 0;
    terms[0] = first;
    terms[1] = second;
    terms[2] = third;
}

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

#endif
