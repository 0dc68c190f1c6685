/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier for parsers, which name the line of the node that an error is about. */
#ifndef KILN_GRAPH_VERIFY_VERIFY_H
#define KILN_GRAPH_VERIFY_VERIFY_H

#include "graph/graph.h"

/** kiln_module_verify(). Stores the node that the error is about in @out_node; NULL: no node. */
gboolean kiln_module_verify_at(const KilnModule *module, const KilnNode **out_node, GError **error);

/** Fails with KILN_ERROR_INVALID where the table of folds, its functions and their arguments do not
 * fit each other. */
gboolean kiln_folding_verify(const KilnModule *module, GError **error);

#endif
