/* SPDX-License-Identifier: Apache-2.0 */
/* What passes ask of ops that only move elements: which part of a value another one is, reshapes to
 * a given shape, and constants whose elements come from other constants. */
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
 * of a split, made in @function. False where it is none or its bounds are not known. */
bool kiln_part_of(const KilnValue *value, const KilnFunction *function, KilnPart *part);

/** A slice of @source along one axis. @type: the result's; NULL: what follows from the source's. */
KilnValue *kiln_part_build(KilnFunction *function, KilnNode *before, const KilnPart *part,
                           const KilnType *type, GError **error);

/** The axis that a `concat` joins along; -1 where it is not known. */
int kiln_concat_axis(const KilnNode *concat);
/** True where @tile repeats extents of 1 only, and known numbers of times: as broadcasting does. */
bool kiln_tile_broadcasts(const KilnNode *tile);
/** Every extent is a number or has a name. */
bool kiln_extents_are_known(const KilnType *type);

/** reshape, flatten, squeeze and unsqueeze: the same elements in the same order. */
bool kiln_op_only_reshapes(KilnOp op);

/** The target of a `reshape` that gives @value the shape of @type whatever extents that are open
 * turn out to be: an open dim stands as -1 where it is the only one, and as 0 where a dim of the
 * same name stands at its place in @value. False where that does not say it all. */
bool kiln_reshape_target(const KilnType *value, const KilnType *type, int64_t target[KILN_MAX_RANK],
                         bool *allowzero);

/** A reshape of @value to @type; NULL without an error where kiln_reshape_target() is false. */
KilnValue *kiln_reshape_build(KilnFunction *function, KilnNode *before, KilnValue *value,
                              const KilnType *type, GError **error);

/** A `const` node of @tensor, which is taken over; @type adds quantization to its shape. */
KilnValue *kiln_moved_constant(KilnFunction *function, KilnNode *before, const char *name,
                               KilnTensor *tensor, const KilnType *type);

#endif
