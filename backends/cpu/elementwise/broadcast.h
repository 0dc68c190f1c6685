/* SPDX-License-Identifier: Apache-2.0 */
/* Numpy broadcasting as loops over rows: dims that are walked in step by the result and all
 * operands are merged, so that the innermost loop is as long as it can be, and in it an operand has
 * stride 1 or stands still. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_BROADCAST_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_BROADCAST_H

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/movement/strided_operands.h"

enum {
    KILN_CPU_MAX_INPUTS = 3,
};

/* Strides count elements of the operand, and are 0 where it is broadcast; those of the result come
   behind those of the inputs. Rank is at least 1. */
typedef struct {
    int rank, n_in;
    int64_t dims[KILN_MAX_RANK];
    int64_t strides[KILN_CPU_MAX_INPUTS + 1][KILN_MAX_RANK];
} KilnCpuBroadcast;

/** The dims of @space that walk in step with all @in, which are broadcast to it, merged: *@dims,
 * and strides per operand as above. Returns their number, at least 1. */
int kiln_cpu_merge_dims(const KilnType *space, const KilnCpuOperand *in, int n_in,
                        int64_t dims[KILN_MAX_RANK], int64_t (*strides)[KILN_MAX_RANK]);

/** @in are broadcast to @out. */
KilnCpuBroadcast kiln_cpu_broadcast(KilnCpuOperand out, const KilnCpuOperand *in, int n_in);

/** True where operand @i stands still in the innermost loop. */
static inline bool
kiln_cpu_is_fixed(const KilnCpuBroadcast *b, int i)
{
    return b->strides[i][b->rank - 1] == 0;
}

/** Which of two operands stands still there. */
static inline KilnCpuFixed
kiln_cpu_fixed_operand(const KilnCpuBroadcast *b)
{
    return kiln_cpu_is_fixed(b, 0)   ? KILN_CPU_FIRST_FIXED
           : kiln_cpu_is_fixed(b, 1) ? KILN_CPU_SECOND_FIXED
                                     : KILN_CPU_NONE_FIXED;
}

/** A run of @n elements of the result from element @at on; operand k from element from[k] on, each
 * step[k] (0 or 1) behind the one before. */
typedef struct {
    int64_t n, at;
    int64_t from[KILN_CPU_MAX_INPUTS], step[KILN_CPU_MAX_INPUTS];
} KilnCpuRun;
typedef void (*KilnCpuRunFn)(const void *data, const KilnCpuRun *run);

/** Calls @fn for runs that cover the result, in any order, on @threads threads. */
void kiln_cpu_broadcast_run(const KilnCpuBroadcast *b, int threads, KilnCpuRunFn fn,
                            const void *data);

#endif
