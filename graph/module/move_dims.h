/* SPDX-License-Identifier: Apache-2.0 */
/* Modules with other dims. */
#ifndef KILN_GRAPH_MODULE_MOVE_DIMS_H
#define KILN_GRAPH_MODULE_MOVE_DIMS_H

#include "graph/graph.h"

/** Moves all open dims of @module to @table, which it then shares, with @replace in the place of
 * their names. Names may only become names with narrower facts, or numbers that the facts allow. */
void kiln_module_move_dims(KilnModule *module, KilnDimTable *table, KilnDimReplace replace,
                           void *data);
/** Puts other expressions in the place of names in types of @function and of its subgraphs. They
 * have the same numbers. */
void kiln_function_replace_dims(KilnFunction *function, KilnDimReplace replace, void *data);

#endif
