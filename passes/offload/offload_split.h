/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a region that a vendor refuses for one of its operators: how compile-offload
 * rewrites. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_SPLIT_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_SPLIT_H

#include "passes/offload/offload_cost.h"

/** Where a node of a region's body goes. No way leads from the last to the first. */
typedef enum {
    KILN_PART_BEFORE, /* it does not read what was refused */
    KILN_PART_INLINE,
    KILN_PART_AFTER,
    KILN_N_PARTS
} KilnPart;

/** One per node id of @body, of which @refused stands between the parts. */
KilnPart *kiln_offload_parts(const KilnFunction *body, const KilnNode *refused);
/** Microseconds that own kernels take for what is worth a region in the parts of @body of which
 * bit 1 << part is set in @which: 0 where there are but tails of products, concats and custom_ops.
 */
double kiln_offload_parts_us(const KilnOffloadCosts *costs, const KilnFunction *body,
                             const KilnPart *parts, uint32_t which);

typedef struct {
    const KilnVendor *vendor;
    const char *callee; /* of the region that was there first */
    uint32_t n_pieces;  /* of it, so far: the next one is @callee.1, .2 … */
} KilnSplitter;

/** Cuts @region, a closed `vendor.graph`: a region for what is before, the nodes that are inline,
 * and one for what is after stand in its place. What goes from one region to the other lies as the
 * vendor computes it. Results are what they were. @out_regions: by part; NULL where one has no
 * nodes. */
gboolean kiln_offload_split(KilnSplitter *splitter, KilnNode *region, const KilnPart *parts,
                            KilnNode *out_regions[KILN_N_PARTS], GError **error);

#endif
