/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a scan: its attributes fit its operands, and all that it scans has one length.
 */
#ifndef KILN_GRAPH_MODULE_SCAN_H
#define KILN_GRAPH_MODULE_SCAN_H

#include "graph/graph.h"
#include "graph/op/flow.h"

/** Checks @attrs of a scan with @n operands of @types, states first, and @n_results results. An
 * operand that is missing has NULL. KILN_ERROR_SHAPE where an axis or a length does not fit,
 * KILN_ERROR_INVALID otherwise; an error does not name the node. Lengths that are not known yet are
 * compared in the run. */
gboolean kiln_scan_check(const KilnAttrs_scan *attrs, const KilnType *const *types, uint32_t n,
                         uint32_t n_results, GError **error);
/** The same for @node. */
gboolean kiln_scan_check_node(const KilnNode *node, GError **error);

#endif
