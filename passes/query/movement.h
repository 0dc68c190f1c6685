/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for ops that only move elements: parts of another value, reshapes to a given shape, and
 * constants whose elements come from other constants. */
#ifndef KILN_PASSES_QUERY_MOVEMENT_H
#define KILN_PASSES_QUERY_MOVEMENT_H

#include "graph/module.h"

/** Indices [begin, end) along one axis of @source, all of every other. */
typedef struct {
    KilnValue *source;
    int axis;
    int64_t begin, end;
} KilnPart;

/** Describes @value as a part of another: a slice without gaps along at most one axis, or a result
 * of a split, made in @function. False if it is none or its bounds are not known. */
bool kiln_part_of(const KilnValue *value, const KilnFunction *function, KilnPart *part);

/** The type of @n indices along the axis of @part. */
KilnType kiln_part_type(const KilnPart *part, int64_t n);
/** A slice of @source along one axis. @type: the result's; NULL: follows from the source's. */
KilnValue *kiln_part_build(KilnFunction *function, KilnNode *before, const KilnPart *part,
                           const KilnType *type, GError **error);

/** The element at @index of @value along @axis, without this axis. */
KilnValue *kiln_element_build(KilnFunction *function, KilnNode *before, KilnValue *value, int axis,
                              int64_t index, GError **error);
/** Joins @n values, 1 or more, along @axis. */
KilnValue *kiln_join_build(KilnFunction *function, KilnNode *before, KilnValue *const *values,
                           uint32_t n, int axis, GError **error);
/** Joins @n values of one type along a new @axis. */
KilnValue *kiln_stack_build(KilnFunction *function, KilnNode *before, KilnValue *const *values,
                            uint32_t n, int axis, GError **error);

/** The axis that a `concat` joins along; -1 if it is not known. */
int kiln_concat_axis(const KilnNode *concat);
/** True if @tile repeats only extents of 1, known numbers of times, as broadcasting does. */
bool kiln_tile_broadcasts(const KilnNode *tile);

/** reshape, flatten, squeeze and unsqueeze: the same elements in the same order. */
bool kiln_op_only_reshapes(KilnOp op);

/** True if kiln_reshape_build() makes a node. */
bool kiln_reshape_can_build(const KilnFunction *function, KilnValue *value, const KilnType *type);
/** A reshape of @value to @type. Open dims that numbers cannot state are read from other values.
 * NULL without an error if a dim is not known, or nowhere to be read. */
KilnValue *kiln_reshape_build(KilnFunction *function, KilnNode *before, KilnValue *value,
                              const KilnType *type, GError **error);

/** A `const` node of @tensor, which it takes over; @type adds quantization to its shape. */
KilnValue *kiln_moved_constant(KilnFunction *function, KilnNode *before, const char *name,
                               KilnTensor *tensor, const KilnType *type);

#endif
