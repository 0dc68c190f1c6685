/* SPDX-License-Identifier: Apache-2.0 */
/* What was touched since a function was last found valid: the functions of graph/ note it while
 * they rewrite. */
#ifndef KILN_GRAPH_MODULE_CHANGES_H
#define KILN_GRAPH_MODULE_CHANGES_H

#include "graph/graph.h"

/* @node's operands, attributes, result types or place changed, or it is there no more. */
void kiln_changes_add_node(KilnNode *node);
/* @value's readers or name changed. */
void kiln_changes_add_value(KilnValue *value);
/* From here on everything is noted: @function is valid as it is. */
void kiln_changes_begin(KilnFunction *function);
/* Nothing is known of what changed. */
void kiln_changes_forget(KilnFunction *function);

/* Counts a change without a note of what it was: the caller has made one. */
static inline void
kiln_function_stamp(KilnFunction *function)
{
    function->stamp++;
    function->module->stamp++;
}

#endif
