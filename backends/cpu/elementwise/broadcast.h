/* SPDX-License-Identifier: Apache-2.0 */
/* Numpy broadcasting as loops over rows. Dims that the result and all operands walk in step are
 * merged, so that the innermost loop is as long as possible. There an operand has stride 1 or 0.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_BROADCAST_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_BROADCAST_H

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/movement/strided_operands.h"
#include "graph/type.h"

enum {
    KILN_CPU_MAX_INPUTS = 3,
};

/* Strides count elements of the operand. They are 0 where it is broadcast. The strides of the
   result follow those of the inputs. The rank is at least 1. */
typedef struct {
    int rank, n_in;
    int64_t dims[KILN_MAX_RANK];
    int64_t strides[KILN_CPU_MAX_INPUTS + 1][KILN_MAX_RANK];
} KilnCpuBroadcast;

/** Broadcasts all @in to @space, and merges the dims of @space that all of them walk in step.
 * Writes @dims and the strides per operand, as above. Returns the number of dims, at least 1. */
int kiln_cpu_merge_dims(const KilnType *space, const KilnCpuOperand *in, int n_in,
                        int64_t dims[KILN_MAX_RANK], int64_t (*strides)[KILN_MAX_RANK]);

/** Broadcasts all @in to @out. */
KilnCpuBroadcast kiln_cpu_broadcast(KilnCpuOperand out, const KilnCpuOperand *in, int n_in);

/** True if operand @i has stride 0 in the innermost loop. */
static inline bool
kiln_cpu_is_fixed(const KilnCpuBroadcast *b, int i)
{
    return b->strides[i][b->rank - 1] == 0;
}

/** Tells which of two operands has stride 0 there. */
static inline KilnCpuFixed
kiln_cpu_fixed_operand(const KilnCpuBroadcast *b)
{
    return kiln_cpu_is_fixed(b, 0)   ? KILN_CPU_FIRST_FIXED
           : kiln_cpu_is_fixed(b, 1) ? KILN_CPU_SECOND_FIXED
                                     : KILN_CPU_NONE_FIXED;
}

/** A run of @n elements of the result from element @at on. Operand k is read from element from[k]
 * on, in steps of step[k] (0 or 1). */
typedef struct {
    int64_t n, at;
    int64_t from[KILN_CPU_MAX_INPUTS], step[KILN_CPU_MAX_INPUTS];
} KilnCpuRun;
typedef void (*KilnCpuRunFn)(const void *data, const KilnCpuRun *run);

/** Calls @fn for runs that cover the result, in any order, on @threads threads. */
void kiln_cpu_broadcast_run(const KilnCpuBroadcast *b, int threads, KilnCpuRunFn fn,
                            const void *data);

#endif
