/* SPDX-License-Identifier: Apache-2.0 */
/* Which operators are to be a vendor's: the choice for a whole function that takes the least time,
 * what it costs to bring values from one side to the other included. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_CUT_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_CUT_H

#include "passes/offload/offload_cost.h"

/** One flag per node id of @function: the vendor's. Of @roles, one per node id, KILN_VENDOR_NONE
 * stays Kiln's. */
bool *kiln_offload_cut(const KilnFunction *function, const KilnVendorRole *roles,
                       const KilnOffloadCosts *costs);

#endif
