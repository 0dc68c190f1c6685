/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/function.h"

#include "graph/node.h"

gboolean
kiln_function_set_results(KilnFunction *function, KilnValue *const *values,
                          const char *const *names, uint32_t n, GError **error)
{
    KilnNode *old = kiln_function_return(function);
    if (old)
        kiln_node_remove(old);
    KilnNodeSpec spec = { .op = KILN_OP_return, .operands = values, .n_operands = n };
    if (!kiln_node_new(function, &spec, error))
        return FALSE;
    g_ptr_array_set_size(function->result_names, 0);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = names && names[i] ? names[i] : values[i]->name;
        g_ptr_array_add(function->result_names, kiln_arena_strdup(function->module->arena, name));
    }
    return TRUE;
}

void
kiln_function_clear(KilnFunction *function)
{
    kiln_foreach_node_reverse (node, function)
        kiln_node_remove(node);
}

gboolean
kiln_function_reinfer(KilnFunction *function, GError **error)
{
    kiln_foreach_node (node, function) {
        if (!kiln_node_reinfer(node, error))
            return FALSE;
        kiln_foreach_region (region, node) {
            if (!kiln_function_reinfer(region, error))
                return FALSE;
        }
    }
    return TRUE;
}
