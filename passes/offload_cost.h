/* SPDX-License-Identifier: Apache-2.0 */
/* What own kernels take, and what leaving a region costs: the side of the scales that a vendor's
 * times are weighed against. */
#ifndef KILN_PASSES_OFFLOAD_COST_H
#define KILN_PASSES_OFFLOAD_COST_H

#include "graph/module.h"

/** Microseconds on one thread of Kiln's own kernel for @node. */
double kiln_own_us(const KilnNode *node);
/** Microseconds to bring a value of @type into another layout. */
double kiln_reorder_us(const KilnType *type);
/** Microseconds of one call of a vendor, beside what it computes. */
double kiln_vendor_call_us(void);

#endif
