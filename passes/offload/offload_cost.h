/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the time of own kernels, and the cost of a move to a vendor. partition-offload compares
 * the two. All times are in microseconds on one thread. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_COST_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_COST_H

#include "ir/target.h"
#include "ir/vendor.h"

typedef struct {
    const KilnTarget *target;
    const KilnVendor *vendor;
    bool any_algorithm; /* own convolutions may use other algorithms than the direct one */
} KilnOffloadCosts;

/** The time of own kernels for @node. @fused: an own kernel computes the product whose tail @node
 * is (ir/tail.h), so @node costs almost nothing. */
double kiln_own_us(const KilnOffloadCosts *costs, const KilnNode *node, bool fused);

/** True if the vendor is no slower than own kernels at @node, which has no layout of its own, with
 * the least numbers that open dims can have. Own kernels choose anew for each number. */
bool kiln_offload_holds_at_least(const KilnOffloadCosts *costs, KilnNode *node);

/** The time of own kernels of @target to bring a value of @type into any other layout. */
double kiln_reorder_us(const KilnTarget *target, const KilnType *type);

/** By node id of @function: the product that applies the node as its tail, being its only reader;
 * NULL: none. The caller frees it. */
const KilnNode **kiln_find_tails(const KilnFunction *function);

/** True if the vendor computes @node in its own layout, for some rank: @node wants it, or follows a
 * node that has it. @layouted: the answers for earlier nodes, by id. */
bool kiln_is_layouted(const KilnVendor *vendor, const KilnNode *node, KilnVendorRole role,
                      const bool *layouted);

/* --- the cut: chooses the operators for a vendor such that a whole function takes the least time,
 * moves of values between both sides included --- */

/** One flag per node id of @function: true for the vendor. Nodes with KILN_VENDOR_NONE in @roles
 * (by node id) stay with Kiln. */
bool *kiln_offload_cut(const KilnFunction *function, const KilnVendorRole *roles,
                       const KilnOffloadCosts *costs);

#endif
