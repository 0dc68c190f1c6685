/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of weighted.h in plain C, so that the compiler can vectorise them. Each instruction set
 * has a file that includes this once and defines WEIGHTED, the name of the table. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_WEIGHTED_LOOPS_H
#define KILN_BACKENDS_CPU_MOVEMENT_WEIGHTED_LOOPS_H

#include "backends/cpu/movement/weighted.h"

#define SUM(id, rest)                                                                              \
    static void id(float *restrict to, const float *const *rows, const float *weights, int64_t n)  \
    {                                                                                              \
        const float *a = rows[0];                                                                  \
        const float w = weights[0];                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = rest;                                                                          \
    }
#define ROW(k) weights[k] * rows[k][i]
SUM(sum1, w *a[i])
SUM(sum2, w *a[i] + ROW(1))
SUM(sum3, w *a[i] + ROW(1) + ROW(2))
SUM(sum4, w *a[i] + ROW(1) + ROW(2) + ROW(3))
SUM(add1, to[i] + w * a[i])

const KilnCpuWeightedRows WEIGHTED = { .sum = { 0, sum1, sum2, sum3, sum4 }, .add = add1 };

#endif
