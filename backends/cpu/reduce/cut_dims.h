/* SPDX-License-Identifier: Apache-2.0 */
/* The dims of a reduction. Neighbours that are both kept or both reduced are one, and dims of
 * extent 1 are left out. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_CUT_DIMS_H
#define KILN_BACKENDS_CPU_REDUCE_CUT_DIMS_H

#include "backends/cpu/kernel.h"
#include "graph/attr.h"
#include "graph/type.h"
#include "ir/instr.h"
#include "ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int rank;
    int64_t dims[KILN_MAX_RANK], strides[KILN_MAX_RANK];
    int64_t count;
} Dims;

typedef struct {
    Dims kept, reduced; /* but for the innermost dim */
    bool rows;          /* the innermost dim is reduced */
    int64_t inner;      /* its extent */
} CutDims;

/* A bit for each dim that @axes name. */
static inline uint32_t
bits_of_axes(KilnInts axes, int rank)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < axes.n; i++)
        bits |= 1u << (axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i]);
    return bits;
}

/* A bit for each dim that @instr reduces, a reduction or a global pool. */
static inline uint32_t
reduced_dims(const KilnInstr *instr)
{
    if (instr->kind == KILN_INSTR_global_average_pool || instr->kind == KILN_INSTR_global_max_pool)
        return ~3u;
    /* The attributes of all reductions are the axes alone. */
    return bits_of_axes(kiln_instr_attrs(instr, reduce_sum)->axes, cpu_type(instr, 1)->rank);
}

static inline void
add_dim(Dims *dims, int64_t extent, int64_t stride)
{
    dims->dims[dims->rank] = extent;
    dims->strides[dims->rank] = stride;
    dims->rank++;
    dims->count *= extent;
}

/* @reduced has a bit per dim. */
static inline CutDims
cut_dims(const KilnType *type, uint32_t reduced)
{
    int64_t step = 1, extent[KILN_MAX_RANK], stride[KILN_MAX_RANK];
    bool is_reduced[KILN_MAX_RANK];
    int n = 0; /* merged dims, the innermost first */
    for (int d = type->rank - 1; d >= 0; d--) {
        bool red = reduced >> d & 1;
        if (n > 0 && type->dims[d] == 1)
            continue;
        if (n > 0 && (is_reduced[n - 1] == red || extent[n - 1] == 1)) {
            extent[n - 1] *= type->dims[d];
            is_reduced[n - 1] = red;
        } else {
            extent[n] = type->dims[d];
            stride[n] = step;
            is_reduced[n++] = red;
        }
        step *= type->dims[d];
    }
    CutDims cut = { .kept.count = 1,
                    .reduced.count = 1,
                    .rows = n == 0 || is_reduced[0],
                    .inner = n == 0 ? 1 : extent[0] };
    for (int d = n - 1; d > 0; d--)
        add_dim(is_reduced[d] ? &cut.reduced : &cut.kept, extent[d], stride[d]);
    return cut;
}

#endif
