/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of rows, for the kernels of softmax and attention. */
#ifndef KILN_BACKENDS_CPU_REDUCE_SOFTMAX_LOOPS_H
#define KILN_BACKENDS_CPU_REDUCE_SOFTMAX_LOOPS_H

#include "backends/cpu/reduce/reduce.h"

enum {
    KILN_CPU_SOFTMAX_ROWS = 8 /* rows that take each step together */
};

/** Computes the softmax of @rows rows of @n floats, one behind the other, from @x to @y, which may
 * be @x. Each step of a row waits for the one before, but not for other rows. */
static inline void
kiln_cpu_softmax_rows(const KilnCpuReducers *reducers, float *y, const float *x, int64_t rows,
                      int64_t n)
{
    for (int64_t first = 0; first < rows; first += KILN_CPU_SOFTMAX_ROWS) {
        const int64_t left = rows - first;
        const int64_t some = left < KILN_CPU_SOFTMAX_ROWS ? left : KILN_CPU_SOFTMAX_ROWS;
        float max[KILN_CPU_SOFTMAX_ROWS];
        double sum[KILN_CPU_SOFTMAX_ROWS];
        for (int64_t i = 0; i < some; i++)
            max[i] = (float)reducers->reduce[KILN_CPU_REDUCE_MAX](x + (first + i) * n, n);
        for (int64_t i = 0; i < some; i++)
            sum[i] = reducers->exp_row(y + (first + i) * n, x + (first + i) * n, n, max[i]);
        for (int64_t i = 0; i < some; i++) {
            KilnCpuAffine share = { .scale = (float)(1 / sum[i]) };
            reducers->affine(y + (first + i) * n, y + (first + i) * n, n, &share);
        }
    }
}

#endif
