/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/scope.h"

#include "graph/module.h"

KilnValue *
kiln_onnx_lookup(const KilnOnnxScope *scope, const char *name)
{
    KilnValue *value = NULL;
    for (; scope && !value; scope = scope->outer)
        value = g_hash_table_lookup(scope->values, name);
    return value;
}

/* The nodes of @scope stand in the function of the graph around it, whose names come first. */
static bool
is_inlined(const KilnOnnxScope *scope)
{
    return scope->outer && scope->outer->function == scope->function;
}

gboolean
kiln_onnx_define(KilnOnnxScope *scope, const char *name, KilnValue *value, GError **error)
{
    if (g_hash_table_contains(scope->values, name))
        return kiln_throw(error, KILN_ERROR_INVALID, "graph '%s': two values are called '%s'",
                          scope->graph->name, name);
    g_hash_table_insert(scope->values, (char *)name, value);
    if (is_inlined(scope)) {
        if (value->made_up && !kiln_function_find_value(scope->function, name))
            kiln_value_rename(scope->function, value, name);
        value->made_up = true;
        return TRUE;
    }
    if (kiln_function_find_value(scope->function, name) != value) {
        kiln_onnx_free_name(scope, name);
        kiln_value_rename(scope->function, value, name);
    }
    value->made_up = false;
    return TRUE;
}

void
kiln_onnx_free_name(KilnOnnxScope *scope, const char *name)
{
    KilnFunction *function = scope->function;
    KilnValue *holder = kiln_function_find_value(function, name);
    if (!holder || !holder->made_up)
        return;
    kiln_value_rename(function, holder, kiln_function_unique_name(function, name));
    holder->made_up = true;
}

static void
collect_reads(const KilnOnnxGraph *graph, GHashTable *names)
{
    for (guint i = 0; i < graph->outputs->len; i++) {
        const Onnx__ValueInfoProto *output = g_ptr_array_index(graph->outputs, i);
        g_hash_table_add(names, output->name);
    }
    for (guint i = 0; i < graph->nodes->len; i++) {
        const KilnOnnxNode *node = &g_array_index(graph->nodes, KilnOnnxNode, i);
        for (size_t k = 0; k < node->proto->n_input; k++)
            g_hash_table_add(names, node->proto->input[k]);
        for (size_t k = 0; k < node->n_attrs; k++) {
            if (node->attrs[k].graph)
                collect_reads(node->attrs[k].graph, names);
        }
    }
}

bool
kiln_onnx_is_read(KilnOnnxScope *scope, const char *name)
{
    if (!scope->read) {
        scope->read = g_hash_table_new(g_str_hash, g_str_equal);
        collect_reads(scope->graph, scope->read);
    }
    return g_hash_table_contains(scope->read, name);
}
