/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of what changed in a function since it was last found valid. The functions of graph/ make
 * them while they rewrite. */
#ifndef KILN_GRAPH_MODULE_CHANGES_H
#define KILN_GRAPH_MODULE_CHANGES_H

#include "graph/graph.h"

/* Notes that @node was removed, or that its operands, attributes, result types or place changed. */
void kiln_changes_add_node(KilnNode *node);
/* Notes that the readers or the name of @value changed. */
void kiln_changes_add_value(KilnValue *value);
/* Starts to note all changes. @function is valid now. */
void kiln_changes_begin(KilnFunction *function);
/* Drops the notes: anything may have changed. */
void kiln_changes_forget(KilnFunction *function);

/* Counts a change that the caller has noted already. */
static inline void
kiln_function_stamp(KilnFunction *function)
{
    function->stamp++;
    function->module->stamp++;
}

#endif
