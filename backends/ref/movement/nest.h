/* SPDX-License-Identifier: Apache-2.0 */
/* Nests of loops over elements, for the movement kernels. A kernel that moves data states extents
 * and strides. Elements are opaque bytes, so that one nest serves every element type. */
#ifndef KILN_BACKENDS_REF_MOVEMENT_NEST_H
#define KILN_BACKENDS_REF_MOVEMENT_NEST_H

#include "backends/ref/kernel.h"
#include "graph/type.h"

enum {
    REF_MAX_LOOPS = 2 * KILN_MAX_RANK
};

/** Loops, the outermost first. Strides count elements. Zero repeats, a negative one walks back. */
typedef struct {
    int rank;
    int64_t extents[REF_MAX_LOOPS];
    int64_t to[REF_MAX_LOOPS];
    int64_t from[REF_MAX_LOOPS];
} RefNest;

/** Adds an inner loop. */
static inline void
ref_nest_add(RefNest *nest, int64_t extent, int64_t to, int64_t from)
{
    nest->extents[nest->rank] = extent;
    nest->to[nest->rank] = to;
    nest->from[nest->rank] = from;
    nest->rank++;
}

/** Copies element by element. An element has @size bytes. The two sides must not overlap. */
void kiln_ref_nest_copy(const RefNest *nest, void *to, const void *from, size_t size);

#endif
