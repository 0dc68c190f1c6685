/* SPDX-License-Identifier: Apache-2.0 */
/* One region of two and of what stands between them: how merge-offload rewrites. */
#ifndef KILN_PASSES_OFFLOAD_REGION_MERGE_H
#define KILN_PASSES_OFFLOAD_REGION_MERGE_H

#include "graph/module.h"
#include "ir/vendor.h"

/** Two regions of which no other one lies between. */
typedef struct {
    KilnNode *first, *last; /* `vendor.graph`, closed, plain at all edges */
    GPtrArray *between;     /* KilnNode*, in order: on every way from the first to the last */
    bool *custom;           /* by index in @between: for a custom_op; else the vendor has it */
} KilnMerge;

/** True where the body of a custom_op has a literal of its own and captures it not: in place of an
 * attribute, a single number, or what is no floating point, which the vendor would have to hold. */
bool kiln_merge_clones(const KilnNode *node, uint32_t i);
/** True where own kernels of @target may compute @node as a step among its vendor's, which can hold
 * what it reads and gives: it has no weights that they would pack. */
bool kiln_merge_may_be_custom(const KilnTarget *target, const KilnNode *node);
/** Makes a custom_op, called by @number, of @node alone, which is in the body of a region. NULL
 * with an error. */
KilnNode *kiln_merge_wrap(KilnNode *node, uint32_t number, GError **error);
/** How many custom_ops the nodes of @merge make: what is connected without the vendor's is one. */
uint32_t kiln_merge_customs(const KilnMerge *merge);
/** Makes it, in the place of the last; custom_ops are called by numbers from *@number on, which it
 * counts. What reads the first region or a node between, but is none of them, moves behind. NULL
 * with an error. */
KilnNode *kiln_merge_make(const KilnMerge *merge, uint32_t *number, GError **error);

#endif
