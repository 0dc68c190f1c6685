/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's inside: which node an error is about, so that a parser can name its line. */
#ifndef KILN_GRAPH_VERIFY_VERIFY_H
#define KILN_GRAPH_VERIFY_VERIFY_H

#include "graph/module.h"

/** kiln_module_verify; @out_node gets the node that the error is about, NULL where it is none. */
gboolean kiln_module_verify_at(const KilnModule *module, const KilnNode **out_node, GError **error);

#endif
