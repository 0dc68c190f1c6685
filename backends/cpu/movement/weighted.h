/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rows with weights, per instruction set: ((w0 a + w1 b) + w2 c) + …, each product and each
 * sum rounded, so that every instruction set has the same bits. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_WEIGHTED_H
#define KILN_BACKENDS_CPU_MOVEMENT_WEIGHTED_H

#include "backends/cpu/isa.h"

#include <stdint.h>

enum {
    KILN_CPU_WEIGHTED_ROWS = 4, /* at most in one call */
};

/** Writes the sum of the @rows to @to. The number of rows is that of the loop. */
typedef void (*KilnCpuWeighted)(float *to, const float *const *rows, const float *weights,
                                int64_t n);

typedef struct {
    KilnCpuWeighted sum[KILN_CPU_WEIGHTED_ROWS + 1]; /* by rows, from 1 on */
    /* Adds one row to what is there. */
    KilnCpuWeighted add;
} KilnCpuWeightedRows;

extern const KilnCpuWeightedRows kiln_cpu_weighted_portable;
#if defined(__x86_64__)
extern const KilnCpuWeightedRows kiln_cpu_weighted_avx2;
extern const KilnCpuWeightedRows kiln_cpu_weighted_avx512;
#endif

/** Returns the loops of the best instruction set. */
static inline const KilnCpuWeightedRows *
kiln_cpu_weighted(void)
{
    return KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, &kiln_cpu_weighted);
}

#endif
