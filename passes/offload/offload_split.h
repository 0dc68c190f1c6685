/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a region if a vendor refuses one of its operators: the rewrite of compile-offload. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_SPLIT_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_SPLIT_H

#include "graph/graph.h"
#include "ir/vendor.h"
#include "passes/offload/offload_cost.h"

/** The part of a node of a region's body. No path leads from the last part to the first. */
typedef enum {
    KILN_PART_BEFORE, /* does not read refused results */
    KILN_PART_INLINE,
    KILN_PART_AFTER,
    KILN_N_PARTS
} KilnPart;

/** The part of each node of @body, by id. @refused stands between the parts. */
KilnPart *kiln_offload_parts(const KilnFunction *body, const KilnNode *refused);
/** Microseconds that own kernels take for the parts in @which (bit 1 << part) of @body. Counts only
 * nodes that are worth a region: 0 for tails of products, concats and custom_ops alone. */
double kiln_offload_parts_us(const KilnOffloadCosts *costs, const KilnFunction *body,
                             const KilnPart *parts, uint32_t which);

typedef struct {
    const KilnVendor *vendor;
    const char *callee; /* of the original region */
    uint32_t n_pieces;  /* of it, so far: the next is @callee.1, .2 … */
} KilnSplitter;

/** Cuts @region, a closed `vendor.graph`. A region for the nodes before, the inline nodes, and a
 * region for the nodes after replace it. Values between the regions have the vendor's layout.
 * Results do not change. @out_regions: by part; NULL for a part without nodes. */
gboolean kiln_offload_split(KilnSplitter *splitter, KilnNode *region, const KilnPart *parts,
                            KilnNode *out_regions[KILN_N_PARTS], GError **error);

#endif
