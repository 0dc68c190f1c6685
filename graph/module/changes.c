/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of what was touched, so that what is valid need not be verified again whole. Every note is
 * taken once: a flag on the node or value says that it is there. */
#include "graph/module/changes.h"

void
kiln_changes_begin(KilnFunction *function)
{
    KilnChanges *changes = &function->changes;
    if (!changes->nodes) {
        changes->nodes = g_ptr_array_new();
        changes->values = g_ptr_array_new();
    }
    for (guint i = 0; i < changes->nodes->len; i++)
        ((KilnNode *)g_ptr_array_index(changes->nodes, i))->touched = false;
    for (guint i = 0; i < changes->values->len; i++)
        ((KilnValue *)g_ptr_array_index(changes->values, i))->touched = false;
    g_ptr_array_set_size(changes->nodes, 0);
    g_ptr_array_set_size(changes->values, 0);
    changes->removed_constants = function->module->removed_constants;
    changes->known = true;
}

void
kiln_changes_forget(KilnFunction *function)
{
    if (!function->changes.known)
        return;
    kiln_changes_begin(function);
    function->changes.known = false;
}

/* Where more was touched than there is, looking at the whole costs less. */
static bool
takes_note(KilnFunction *function, const GPtrArray *notes)
{
    if (!function->changes.known)
        return false;
    if (notes->len <= function->n_nodes + function->arguments->len)
        return true;
    kiln_changes_forget(function);
    return false;
}

void
kiln_changes_add_node(KilnNode *node)
{
    KilnChanges *changes = &node->function->changes;
    if (node->touched || !takes_note(node->function, changes->nodes))
        return;
    node->touched = true;
    g_ptr_array_add(changes->nodes, node);
}

void
kiln_changes_add_value(KilnValue *value)
{
    KilnFunction *function = value->def ? value->def->function : ((KilnArgument *)value)->function;
    if (value->touched || !takes_note(function, function->changes.values))
        return;
    value->touched = true;
    g_ptr_array_add(function->changes.values, value);
}
