/* SPDX-License-Identifier: Apache-2.0 */
/* Functions as lists of nodes: their results, their types, and their end. */
#ifndef KILN_GRAPH_FUNCTION_H
#define KILN_GRAPH_FUNCTION_H

#include "graph/graph.h"

G_BEGIN_DECLS

/** Sets or replaces the results and makes the `return` node. @names NULL: the values' own names. */
gboolean kiln_function_set_results(KilnFunction *function, KilnValue *const *values,
                                   const char *const *names, uint32_t n, GError **error);
/** Removes all nodes, `return` too. Nothing outside may read them. */
void kiln_function_clear(KilnFunction *function);
/** Infers all types again in order, also in subgraphs: for use after dims or values were bound. */
gboolean kiln_function_reinfer(KilnFunction *function, GError **error);

G_END_DECLS

#endif
