/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between strided arrays, for all kernels that move data. A kernel states a nest of loops.
 * The copy finds contiguous runs, planes to transpose and rows in it. It cuts them into pieces by
 * shape and runs these on the threads. Elements are opaque bytes: the code fits every element type,
 * and NaNs keep their bits. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_STRIDED_H
#define KILN_BACKENDS_CPU_MOVEMENT_STRIDED_H

#include "graph/type.h"

#include <stddef.h>
#include <stdint.h>

enum {
    KILN_CPU_MAX_LOOPS = 2 * KILN_MAX_RANK,
};

/** Loops in any order. Strides count elements. Source strides may be 0, which repeats, or negative.
 * Target strides are positive, and no element is written twice. */
typedef struct {
    int rank;
    int64_t extents[KILN_CPU_MAX_LOOPS];
    int64_t to[KILN_CPU_MAX_LOOPS], from[KILN_CPU_MAX_LOOPS];
} KilnCpuNest;

static inline void
kiln_cpu_nest_add(KilnCpuNest *nest, int64_t extent, int64_t to, int64_t from)
{
    nest->extents[nest->rank] = extent;
    nest->to[nest->rank] = to;
    nest->from[nest->rank] = from;
    nest->rank++;
}

/** The two ends of a copy: the addresses of the elements at which all loops are at 0. */
typedef struct {
    void *to;
    const void *from;
    size_t size; /* of an element: 1, 2, 4 or 8 bytes */
    int threads;
} KilnCpuEnds;

void kiln_cpu_nest_copy(const KilnCpuNest *nest, const KilnCpuEnds *ends);

#endif
