/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's inside: which node an error is about, so that a parser can name its line. */
#ifndef KILN_GRAPH_VERIFY_VERIFY_H
#define KILN_GRAPH_VERIFY_VERIFY_H

#include "graph/graph.h"

/** kiln_module_verify; @out_node gets the node that the error is about, NULL where it is none. */
gboolean kiln_module_verify_at(const KilnModule *module, const KilnNode **out_node, GError **error);

/** KILN_ERROR_INVALID where the table of folds, its functions and their arguments do not fit each
 * other. */
gboolean kiln_folding_verify(const KilnModule *module, GError **error);

#endif
