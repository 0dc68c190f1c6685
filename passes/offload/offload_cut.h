/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the operators for a vendor, such that a whole function takes the least time. The time
 * includes the moves of values between both sides. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_CUT_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_CUT_H

#include "graph/attr.h"
#include "ir/vendor.h"
#include "passes/offload/offload_cost.h"

/** One flag per node id of @function: true for the vendor. Nodes with KILN_VENDOR_NONE in @roles
 * (by node id) stay with Kiln. */
bool *kiln_offload_cut(const KilnFunction *function, const KilnVendorRole *roles,
                       const KilnOffloadCosts *costs);

#endif
