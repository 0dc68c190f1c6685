/* SPDX-License-Identifier: Apache-2.0 */
/* What a group of floats is folded to, whoever folds it: the instructions and stacks that end with
 * them. A group is a sequence, which is folded in blocks of KILN_CPU_FOLD_BLOCK floats from its
 * start on, blocks joined in order in double, and longer ones than a piece piece by piece, so that
 * the order of a sum follows from the length alone. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_GROUP_SUMS_H
#define KILN_BACKENDS_CPU_REDUCE_GROUP_SUMS_H

#include "backends/cpu/reduce/reduce.h"
#include "ir/instr.h"

#include <math.h>

enum {
    KILN_CPU_FOLD_PIECE = 8 * KILN_CPU_FOLD_BLOCK
};

/* How the elements of a group are joined. */
static inline KilnCpuFold
kiln_cpu_fold_of(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_reduce_l1:
        return KILN_CPU_FOLD_ABSOLUTE;
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_sum_square:
        return KILN_CPU_FOLD_SQUARE;
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_global_max_pool:
        return KILN_CPU_FOLD_MAX;
    case KILN_INSTR_reduce_min:
        return KILN_CPU_FOLD_MIN;
    default:
        return KILN_CPU_FOLD_SUM;
    }
}

/* What no elements come to. */
static inline double
kiln_cpu_fold_start(KilnCpuFold fold)
{
    return fold == KILN_CPU_FOLD_MAX   ? -(double)INFINITY
           : fold == KILN_CPU_FOLD_MIN ? (double)INFINITY
                                       : 0;
}

static inline double
kiln_cpu_fold_join(KilnCpuFold fold, double a, double b)
{
    switch (fold) {
    case KILN_CPU_FOLD_MAX:
        return b > a || (b == a && !signbit(b)) || isnan(b) ? b : a;
    case KILN_CPU_FOLD_MIN:
        return b < a || (b == a && signbit(b)) || isnan(b) ? b : a;
    default:
        return a + b;
    }
}

/* Joins @n groups at once. */
static inline void
kiln_cpu_fold_join_all(KilnCpuFold fold, double *a, const float *b, int64_t n)
{
    const bool extreme = fold == KILN_CPU_FOLD_MAX || fold == KILN_CPU_FOLD_MIN;
    for (int64_t i = 0; !extreme && i < n; i++)
        a[i] += (double)b[i];
    for (int64_t i = 0; extreme && i < n; i++)
        a[i] = kiln_cpu_fold_join(fold, a[i], (double)b[i]);
}

/* The result of a group of @count elements. */
static inline float
kiln_cpu_fold_finish(KilnInstrKind kind, double folded, int64_t count)
{
    switch (kind) {
    case KILN_INSTR_reduce_l2:
        return (float)sqrt(folded);
    case KILN_INSTR_reduce_mean:
    case KILN_INSTR_global_average_pool:
        return (float)(folded / (double)count);
    default:
        return (float)folded;
    }
}

#endif
