/* SPDX-License-Identifier: Apache-2.0 */
/* Merges two regions and the nodes between them into one: the rewrite of merge-offload. */
#ifndef KILN_PASSES_OFFLOAD_REGION_MERGE_H
#define KILN_PASSES_OFFLOAD_REGION_MERGE_H

#include "ir/target.h"

/** Two regions without another region between them. */
typedef struct {
    KilnNode *first, *last; /* `vendor.graph`, closed, plain at all edges */
    GPtrArray *between;     /* KilnNode*, in order: on all paths from first to last */
    bool *custom;           /* by index in @between: for a custom_op, else the vendor's */
} KilnMerge;

/** True if own kernels of @target may compute @node as a step of its vendor. The vendor can hold
 * its operands and results, and it has no weights to pack. */
bool kiln_merge_may_be_custom(const KilnTarget *target, const KilnNode *node);
/** Turns @node in the body of a region into a custom_op, named by @number. NULL with an error. */
KilnNode *kiln_merge_wrap(KilnNode *node, uint32_t number, GError **error);
/** The number of custom_ops of @merge: nodes that connect without a node of the vendor form one. */
uint32_t kiln_merge_customs(const KilnMerge *merge);
/** Makes the merged region in place of the last one. Names custom_ops by *@number, which it counts
 * up. Other readers of the first region or of the nodes between move behind it. NULL with an error.
 */
KilnNode *kiln_merge_make(const KilnMerge *merge, uint32_t *number, GError **error);

#endif
