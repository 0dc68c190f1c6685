/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as the loops that walk over memory, and which operators mean the same on values that lie
 * in one: there an operator on physical dims does what it does on the dims of its type. */
#ifndef KILN_GRAPH_MODULE_LAYOUT_H
#define KILN_GRAPH_MODULE_LAYOUT_H

#include "graph/node.h"

/** The loops over memory, from the outermost: aBcd16b of [1,60,7,7] walks a by 1, B by 4 blocks, c,
 * d, and b by 16. */
typedef struct {
    int rank;
    int dim[2 * KILN_MAX_RANK];        /* that a loop walks over */
    int64_t extent[2 * KILN_MAX_RANK]; /* of a loop */
    int outer[KILN_MAX_RANK];          /* by dim: the loop over it, or over its blocks */
    int64_t block[KILN_MAX_RANK];      /* by dim: elements of a block; 1 where it is not split */
} KilnLayout;

/** False where @type is not static, or its tag does not fit it. A plain type has a loop per dim. */
bool kiln_layout_of(const KilnType *type, KilnLayout *out);
/** True where no block of @type, which is @layout, is filled up with padding. */
bool kiln_layout_is_whole(const KilnType *type, const KilnLayout *layout);
/** The same bytes with a dim per loop and no layout; false where that are too many dims. */
bool kiln_layout_flatten(const KilnType *type, KilnType *out);

/** True where operand @i of @node lies as a result of type @result does: the others are plain. */
bool kiln_layout_follows(const KilnNode *node, uint32_t i, const KilnType *result);
/** True where @node gives @result, its operands that follow it lying in the layout of @result, by
 * computing on the loops alone: element-wise operators, concat, slice, split, pad, reductions that
 * keep dims, channel_shuffle, as long as they leave blocks whole. All types must be static. The
 * parts of a split lie all in the layout, or none does. */
bool kiln_layout_carries(const KilnNode *node, const KilnType *result);

/** @value brought into layout @tag, plain where that is NULL, by a `pack` or `unpack` in front of
 * @before (NULL: at the end): the node's result, which keeps the name of a constant. NULL with an
 * error. */
KilnValue *kiln_value_reorder(KilnFunction *function, KilnNode *before, KilnValue *value,
                              const char *tag, GError **error);

#endif
