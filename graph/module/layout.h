/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a layout as loops over memory, and says which operators can work on the physical dims
 * of such values. */
#ifndef KILN_GRAPH_MODULE_LAYOUT_H
#define KILN_GRAPH_MODULE_LAYOUT_H

#include "graph/node.h"

/** The loops, outermost first: aBcd16b of [1,60,7,7] walks a by 1, B by 4 blocks, c, d, b by 16. */
typedef struct {
    int rank;
    int dim[2 * KILN_MAX_RANK];        /* by loop: the dim that it walks */
    int64_t extent[2 * KILN_MAX_RANK]; /* by loop */
    int outer[KILN_MAX_RANK];          /* by dim: the loop over it or its blocks */
    int64_t block[KILN_MAX_RANK];      /* by dim: elements of a block; 1: no blocks */
} KilnLayout;

/** False if @type is not static or its tag does not fit it. A plain type has one loop per dim. */
bool kiln_layout_of(const KilnType *type, KilnLayout *out);
/** True if no block of @type, whose loops are @layout, has padding. */
bool kiln_layout_is_whole(const KilnType *type, const KilnLayout *layout);
/** The type of the same bytes with a dim per loop and no layout. False if these are too many dims.
 */
bool kiln_layout_flatten(const KilnType *type, KilnType *out);

/** True if operand @i of @node has the layout of a result of type @result. Other operands are
 * plain. */
bool kiln_layout_follows(const KilnNode *node, uint32_t i, const KilnType *result);
/** True if @node can compute @result on the loops alone, with its operands in the layout of
 * @result. These are element-wise operators, concat, slice, split, pad, channel_shuffle, and
 * reductions that keep dims. They must leave blocks whole. All types must be static. All parts of a
 * split have the layout, or none. */
bool kiln_layout_carries(const KilnNode *node, const KilnType *result);

/** Brings @value into layout @tag (NULL: plain). Inserts a `pack` or `unpack` before @before (NULL:
 * at the end). Returns the result, which keeps the name of a constant. NULL with an error. */
KilnValue *kiln_value_reorder(KilnFunction *function, KilnNode *before, KilnValue *value,
                              const char *tag, GError **error);

#endif
