/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/scope.h"

#include "graph/module.h"

#include <string.h>

KilnValue *
kiln_onnx_lookup(const KilnOnnxScope *scope, const char *name)
{
    KilnValue *value = NULL;
    for (; scope && !value; scope = kiln_onnx_around(scope))
        value = g_hash_table_lookup(scope->values, name);
    return value;
}

bool
kiln_onnx_is_left_out(const KilnOnnxScope *scope, const char *name)
{
    for (; scope; scope = kiln_onnx_around(scope)) {
        if (g_hash_table_contains(scope->values, name))
            return !g_hash_table_lookup(scope->values, name);
    }
    return false;
}

const char *
kiln_onnx_shown(const KilnOnnxScope *scope, const char *name)
{
    return scope->frame
               ? kiln_arena_printf(scope->import->module->arena, "%s%s", scope->frame->prefix, name)
               : name;
}

int64_t
kiln_onnx_scope_opset(const KilnOnnxScope *scope, const char *domain)
{
    int64_t own = scope->frame ? kiln_onnx_opset(scope->frame->function->opsets, domain) : 0;
    return own ? own : kiln_onnx_model_opset(scope->import->model, domain);
}

/* --- attributes by reference --- */

static const char *
reference_of(const KilnOnnxAttr *attr)
{
    const char *name = attr->proto->ref_attr_name;
    return name && *name ? name : NULL;
}

static const KilnOnnxAttr *
find_attr(const KilnOnnxAttr *attrs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(attrs[i].proto->name, name) == 0)
            return &attrs[i];
    }
    return NULL;
}

/* What attribute @name of the function is in this call: as the call says, else its default. */
static const KilnOnnxAttr *
attr_of_call(const KilnOnnxFrame *frame, const char *name)
{
    const KilnOnnxAttr *attr = find_attr(frame->call->attrs, frame->call->n_attrs, name);
    const GArray *defaults = frame->function->defaults;
    return attr ? attr : find_attr((const KilnOnnxAttr *)defaults->data, defaults->len, name);
}

/* A graph reads names around its call, which mean nothing in the function: it stays a reference. */
static void
copy_resolved(const KilnOnnxScope *scope, const KilnOnnxAttr *attr, KilnOnnxNode *out)
{
    KilnArena *arena = scope->import->model->arena;
    const char *name = reference_of(attr);
    const KilnOnnxAttr *said = name ? attr_of_call(scope->frame, name) : attr;
    if (!said)
        return;
    KilnOnnxAttr *copy = &out->attrs[out->n_attrs++];
    *copy = said->graph && name ? *attr : *said;
    if (!name || said->graph)
        return;
    Onnx__AttributeProto *proto = kiln_arena_copy(arena, said->proto, sizeof *said->proto);
    proto->name = attr->proto->name;
    copy->proto = proto;
}

const KilnOnnxNode *
kiln_onnx_resolve(const KilnOnnxScope *scope, const KilnOnnxNode *node)
{
    KilnArena *arena = scope->import->model->arena;
    bool refers = false;
    for (size_t i = 0; i < node->n_attrs; i++)
        refers |= reference_of(&node->attrs[i]) != NULL;
    if (!scope->frame || !refers)
        return node;
    KilnOnnxNode *resolved = kiln_arena_copy(arena, node, sizeof *node);
    resolved->attrs = kiln_arena_new0(arena, KilnOnnxAttr, node->n_attrs);
    resolved->n_attrs = 0;
    for (size_t i = 0; i < node->n_attrs; i++)
        copy_resolved(scope, &node->attrs[i], resolved);
    return resolved;
}

/* --- names --- */

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
    name = kiln_onnx_shown(scope, name);
    if (is_inlined(scope)) {
        if (value->made_up && !kiln_function_find_value(scope->function, name))
            kiln_value_rename(scope->function, value, name);
        value->made_up = true;
        return TRUE;
    }
    if (kiln_function_find_value(scope->function, name) != value) {
        kiln_onnx_free_name(scope->function, name);
        kiln_value_rename(scope->function, value, name);
    }
    value->made_up = false;
    return TRUE;
}

void
kiln_onnx_free_name(KilnFunction *function, const char *name)
{
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
