/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a tensor into groups along axes. The elements of a group differ only in the indices of those
 * axes. Reductions turn each group into one element. */
#ifndef KILN_BACKENDS_REF_REDUCE_GROUPS_H
#define KILN_BACKENDS_REF_REDUCE_GROUPS_H

#include "backends/ref/kernel.h"
#include "graph/attr.h"

/** One group: its first element, and dims and strides to walk through it. */
typedef struct {
    KilnDType dtype;
    const void *data;
    int64_t base;
    int64_t count;
    int rank;
    int64_t dims[KILN_MAX_RANK];
    int64_t strides[KILN_MAX_RANK];
} RefGroup;

/** All groups. @group is the first. The base of another is ref_offset() of an index of @dims. */
typedef struct {
    RefGroup group;
    int rank; /* of the dims that stay */
    int64_t dims[KILN_MAX_RANK];
    int64_t strides[KILN_MAX_RANK];
    int64_t count;
} RefGroups;

/** Runs the following statement for each element of @group in row-major order, with its @offset. */
#define ref_foreach_element(group, offset)                                                         \
    for (int64_t index_[KILN_MAX_RANK] = { 0 }, left_ = (group)->count, offset = (group)->base;    \
         left_ > 0; left_--, ref_next(index_, (group)->dims, (group)->rank),                       \
                 offset = (group)->base + ref_offset(index_, (group)->strides, (group)->rank))

/** Cuts @data along @axes, which may count from the end. Without axes every element is a group. */
static inline RefGroups
ref_groups(const KilnType *type, const void *data, KilnInts axes)
{
    RefGroups groups = { .group = { .dtype = type->dtype, .data = data, .count = 1 }, .count = 1 };
    int64_t strides[KILN_MAX_RANK];
    bool grouped[KILN_MAX_RANK] = { false };
    ref_strides(type, strides);
    for (uint32_t a = 0; a < axes.n; a++)
        grouped[axes.v[a] < 0 ? axes.v[a] + type->rank : axes.v[a]] = true;
    for (int d = 0; d < type->rank; d++) {
        RefGroup *group = &groups.group;
        int to = grouped[d] ? group->rank++ : groups.rank++;
        (grouped[d] ? group->dims : groups.dims)[to] = type->dims[d];
        (grouped[d] ? group->strides : groups.strides)[to] = strides[d];
        *(grouped[d] ? &group->count : &groups.count) *= type->dims[d];
    }
    return groups;
}

#endif
