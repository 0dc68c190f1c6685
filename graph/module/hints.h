/* SPDX-License-Identifier: Apache-2.0 */
/* Types at the hints of their open dims, for cost models that ask for numbers. */
#ifndef KILN_GRAPH_MODULE_HINTS_H
#define KILN_GRAPH_MODULE_HINTS_H

#include "graph/graph.h"

/** True if a type in @function, or in a subgraph of it, has an expression. */
bool kiln_function_is_open(const KilnFunction *function);
/** Writes the number at the hints beside the expression of each dim in @function and its subgraphs.
 * The dims of values around @function that it reads get theirs, too. Expressions stay. Call
 * kiln_function_leave_hints() before anything else takes these numbers for facts. */
void kiln_function_stand_at_hints(KilnFunction *function);
/** Takes the numbers out of all types that have expressions. @function must still read all values
 * around it that it read before. */
void kiln_function_leave_hints(KilnFunction *function);

/** Guesses the names of the dims of an input of @type, if it holds pictures: one picture has 224
 * rows and columns. Other names stay at 64. */
void kiln_guess_hints(const KilnType *type);

#endif
