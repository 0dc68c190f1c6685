/* SPDX-License-Identifier: Apache-2.0 */
/* How a group of floats is reduced, by the instructions and by the stacks that end with them. A
 * group is a sequence. Blocks of KILN_CPU_REDUCE_BLOCK floats are reduced from its start on and
 * joined in order in double. A group longer than a piece is reduced piece by piece. So the order of
 * a sum follows from the length alone. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_GROUP_SUMS_H
#define KILN_BACKENDS_CPU_REDUCE_GROUP_SUMS_H

#include "backends/cpu/reduce/reduce.h"
#include "ir/instr.h"

#include <math.h>

enum {
    KILN_CPU_REDUCE_PIECE = 8 * KILN_CPU_REDUCE_BLOCK
};

/* How the elements of a group are joined. */
static inline KilnCpuReduction
kiln_cpu_reduction_of(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_reduce_l1:
        return KILN_CPU_REDUCE_ABSOLUTE;
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_sum_square:
        return KILN_CPU_REDUCE_SQUARE;
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_global_max_pool:
        return KILN_CPU_REDUCE_MAX;
    case KILN_INSTR_reduce_min:
        return KILN_CPU_REDUCE_MIN;
    default:
        return KILN_CPU_REDUCE_SUM;
    }
}

/* The result for no elements. */
static inline double
kiln_cpu_reduction_start(KilnCpuReduction by)
{
    return by == KILN_CPU_REDUCE_MAX   ? -(double)INFINITY
           : by == KILN_CPU_REDUCE_MIN ? (double)INFINITY
                                       : 0;
}

static inline double
kiln_cpu_reduction_join(KilnCpuReduction by, double a, double b)
{
    switch (by) {
    case KILN_CPU_REDUCE_MAX:
        return b > a || (b == a && !signbit(b)) || isnan(b) ? b : a;
    case KILN_CPU_REDUCE_MIN:
        return b < a || (b == a && signbit(b)) || isnan(b) ? b : a;
    default:
        return a + b;
    }
}

/* Joins @n groups at once. */
static inline void
kiln_cpu_reduction_join_all(KilnCpuReduction by, double *a, const float *b, int64_t n)
{
    const bool extreme = by == KILN_CPU_REDUCE_MAX || by == KILN_CPU_REDUCE_MIN;
    for (int64_t i = 0; !extreme && i < n; i++)
        a[i] += (double)b[i];
    for (int64_t i = 0; extreme && i < n; i++)
        a[i] = kiln_cpu_reduction_join(by, a[i], (double)b[i]);
}

/* The result of a group of @count elements. */
static inline float
kiln_cpu_reduction_finish(KilnInstrKind kind, double result, int64_t count)
{
    switch (kind) {
    case KILN_INSTR_reduce_l2:
        return (float)sqrt(result);
    case KILN_INSTR_reduce_mean:
    case KILN_INSTR_global_average_pool:
        return (float)(result / (double)count);
    default:
        return (float)result;
    }
}

#endif
