/* SPDX-License-Identifier: Apache-2.0 */
/* What own kernels take, and what leaving them for a vendor costs: the two sides of the scales on
 * which partition-offload weighs. All in microseconds on one thread. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_COST_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_COST_H

#include "graph/module.h"
#include "ir/vendor.h"

typedef struct {
    const KilnTarget *target;
    const KilnVendor *vendor;
    bool any_algorithm; /* own convolutions may be computed by another algorithm than the direct */
} KilnOffloadCosts;

/** Own kernels for @node. What a product does on its way out (ir/tail.h) costs next to nothing
 * where an own kernel computes the product, too: @fused says so. */
double kiln_own_us(const KilnOffloadCosts *costs, const KilnNode *node, bool fused);

/** Microseconds in which own kernels of @target bring a value of @type into another layout,
 * whichever. */
double kiln_reorder_us(const KilnTarget *target, const KilnType *type);

/** By id of each node of @function: the product that applies the node on its way out, as its only
 * reader; NULL where there is none. To be freed. */
const KilnNode **kiln_find_tails(const KilnFunction *function);

/** True where the vendor computes @node in a layout of its own, of some rank: it wants to, or it
 * follows something that does. @layouted: the answers for nodes before it, by id. */
bool kiln_is_layouted(const KilnVendor *vendor, const KilnNode *node, KilnVendorRole role,
                      const bool *layouted);

#endif
