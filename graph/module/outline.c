/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of nodes with other operands. */
#include "graph/module/outline.h"

#include "graph/function.h"
#include "graph/node.h"
#include "graph/op/offload.h"

static KilnFunction *copy_body(KilnModule *module, const KilnFunction *body, bool numbered,
                               GHashTable *values, GError **error);

/* Constants are the module's: those of another one are copied by their bytes, which are shared.
 * NULL with an error where a subgraph cannot be copied; without one: it has no attributes. */
static void *
copy_attrs(KilnFunction *to, const KilnNode *from, GHashTable *values, const char *name,
           GError **error)
{
    const KilnOpInfo *info = kiln_op_info(from->op);
    KilnArena *arena = to->module->arena;
    void *attrs = kiln_op_attrs_new(from->op, arena);
    if (!attrs)
        return NULL;
    kiln_attrs_copy(info->attrs, info->n_attrs, attrs, from->attrs, arena);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        KilnConstant **constant = (void *)((char *)attrs + info->attrs[i].offset);
        if (info->attrs[i].kind == KILN_ATTR_CONSTANT && *constant &&
            (*constant)->module != to->module)
            *constant = kiln_module_add_constant(
                to->module, "c", kiln_tensor_copy((*constant)->tensor), &(*constant)->type);
        KilnFunction **region = (void *)((char *)attrs + info->attrs[i].offset);
        if (info->attrs[i].kind == KILN_ATTR_FUNCTION && *region &&
            !(*region = copy_body(to->module, *region, name != NULL, values, error)))
            return NULL;
    }
    /* What it is called says nothing of what it computes. */
    if (name && from->op == KILN_OP_custom_op)
        ((KilnAttrs_custom_op *)attrs)->callee = kiln_arena_strdup(arena, name);
    return attrs;
}

KilnNode *
kiln_node_copy(KilnFunction *to, const KilnNode *from, GHashTable *values, KilnNode *before,
               const char *name, GError **error)
{
    g_autofree KilnValue **operands = g_new0(KilnValue *, from->n_operands + 1);
    g_autofree const char **names = g_new0(const char *, from->n_results + 1);
    g_autofree KilnType *types = g_new0(KilnType, from->n_results + 1);
    for (uint32_t i = 0; i < from->n_operands; i++) {
        KilnValue *value = from->operands[i].value;
        KilnValue *other = value ? g_hash_table_lookup(values, value) : NULL;
        operands[i] = other ? other : value;
    }
    for (uint32_t i = 0; i < from->n_results; i++) {
        names[i] = name ? name : from->results[i].name;
        types[i] = kiln_type_copy(to->module->arena, &from->results[i].type);
    }
    void *attrs = copy_attrs(to, from, values, name, error);
    if (!attrs && kiln_op_info(from->op)->n_attrs)
        return NULL;
    KilnNodeSpec spec = { .op = from->op,
                          .name = name ? NULL : from->name,
                          .operands = operands,
                          .n_operands = from->n_operands,
                          .n_results = from->n_results,
                          .attrs = attrs,
                          .before = before,
                          .result_names = from->n_results ? names : NULL,
                          .types = from->n_results ? types : NULL };
    KilnNode *copy = kiln_node_new(to, &spec, error);
    for (uint32_t i = 0; copy && i < from->n_results; i++)
        g_hash_table_insert(values, &((KilnNode *)from)->results[i], &copy->results[i]);
    return copy;
}

static bool
copy_arguments(KilnFunction *to, const KilnFunction *body, bool numbered, GHashTable *values,
               GError **error)
{
    for (guint i = 0; i < body->arguments->len; i++) {
        KilnArgument *argument = kiln_function_argument(body, i);
        KilnType type = kiln_type_copy(to->module->arena, &argument->value.type);
        g_autofree char *name = numbered ? g_strdup_printf("a%u", i) : NULL;
        KilnArgument *copy =
            kiln_function_add_argument(to, name ? name : argument->value.name, &type, error);
        if (!copy)
            return false;
        copy->constness = argument->constness;
        g_hash_table_insert(values, &argument->value, &copy->value);
    }
    return true;
}

static KilnValue *
value_for(GHashTable *values, KilnValue *value)
{
    KilnValue *other = g_hash_table_lookup(values, value);
    return other ? other : value;
}

static gboolean
fill_body(KilnFunction *to, const KilnFunction *body, bool numbered, GHashTable *values,
          GError **error)
{
    if (!copy_arguments(to, body, numbered, values, error))
        return FALSE;
    const KilnNode *results = kiln_function_return(body);
    uint32_t n = 0;
    kiln_foreach_node (node, body) {
        g_autofree char *name = numbered ? g_strdup_printf("v%u", n++) : NULL;
        if (node != results && !kiln_node_copy(to, node, values, NULL, name, error))
            return FALSE;
    }
    g_autofree KilnValue **returned = g_new0(KilnValue *, results->n_operands + 1);
    for (uint32_t i = 0; i < results->n_operands; i++)
        returned[i] = value_for(values, results->operands[i].value);
    return kiln_function_set_results(to, returned, NULL, results->n_operands, error);
}

/* What the body reads around it is what @values says; its own values are entered there. */
static KilnFunction *
copy_body(KilnModule *module, const KilnFunction *body, bool numbered, GHashTable *values,
          GError **error)
{
    KilnFunction *to = kiln_function_new_region(module, numbered ? "body" : body->name);
    if (fill_body(to, body, numbered, values, error))
        return to;
    kiln_function_clear(to); /* it reads nothing around it any more */
    return NULL;
}

KilnFunction *
kiln_body_copy(KilnModule *module, const KilnFunction *body, bool numbered, GError **error)
{
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    return copy_body(module, body, numbered, values, error);
}

/* Copies of the nodes of @body before @before. */
static bool
copy_nodes(KilnFunction *to, const KilnFunction *body, GHashTable *values, KilnNode *before,
           GError **error)
{
    const KilnNode *results = kiln_function_return(body);
    kiln_foreach_node (inner, body) {
        if (inner != results && !kiln_node_copy_inline(to, inner, values, before, error))
            return false;
    }
    return true;
}

gboolean
kiln_node_copy_inline(KilnFunction *to, const KilnNode *from, GHashTable *values, KilnNode *before,
                      GError **error)
{
    if (from->op != KILN_OP_custom_op)
        return kiln_node_copy(to, from, values, before, NULL, error) != NULL;
    const KilnFunction *body = kiln_attrs(from, custom_op)->body;
    const KilnNode *results = kiln_function_return(body);
    for (uint32_t i = 0; i < from->n_operands; i++)
        g_hash_table_insert(values, &kiln_function_argument(body, i)->value,
                            value_for(values, from->operands[i].value));
    if (!copy_nodes(to, body, values, before, error))
        return FALSE;
    for (uint32_t r = 0; r < from->n_results; r++)
        g_hash_table_insert(values, (gpointer)&from->results[r],
                            value_for(values, results->operands[r].value));
    return TRUE;
}

gboolean
kiln_node_inline(KilnNode *node, const KilnFunction *body, GError **error)
{
    g_autoptr(GHashTable) values = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < body->arguments->len; i++)
        g_hash_table_insert(values, &kiln_function_argument(body, i)->value,
                            kiln_node_operand(node, i));
    const KilnNode *results = kiln_function_return(body);
    if (!copy_nodes(node->function, body, values, node, error))
        return FALSE;
    for (uint32_t i = 0; i < node->n_results; i++) {
        KilnValue *value = value_for(values, results->operands[i].value);
        node->results[i].type = value->type; /* which may say more than the node did */
        kiln_value_replace(&node->results[i], value);
    }
    kiln_node_remove(node);
    return TRUE;
}

KilnNode *
kiln_node_remake_offload(KilnNode *node, KilnOp op, const void *attrs, const KilnType *types,
                         GError **error)
{
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[i] = node->operands[i].value;
    KilnNodeSpec spec = { .op = op,
                          .name = node->name,
                          .operands = operands,
                          .n_operands = node->n_operands,
                          .n_results = node->n_results,
                          .attrs = attrs,
                          .types = types,
                          .before = node };
    KilnNode *made = kiln_node_new(node->function, &spec, error);
    if (!made)
        return NULL;
    for (uint32_t r = 0; r < node->n_results; r++) {
        node->results[r].type = made->results[r].type;
        kiln_value_replace(&node->results[r], &made->results[r]);
    }
    kiln_node_remove(node);
    return made;
}

gboolean
kiln_node_call(KilnNode *node, const KilnDeclaration *declaration, GError **error)
{
    g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
    for (uint32_t i = 0; i < node->n_results; i++)
        types[i] = node->results[i].type;
    const KilnAttrs_vendor_executable attrs = { .callee = declaration->name };
    return kiln_node_remake_offload(node, KILN_OP_vendor_executable, &attrs, types, error) != NULL;
}

/* Of an offload node. */
static const KilnFunction *
body_of(const KilnNode *node, GError **error)
{
    if (node->op == KILN_OP_vendor_graph)
        return kiln_attrs(node, vendor_graph)->body;
    const char *callee = kiln_attrs(node, vendor_executable)->callee;
    const KilnDeclaration *found = kiln_module_find_declaration(node->function->module, callee);
    if (!found || !found->body)
        kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s: @%s: expected a declaration with a body",
                   kiln_node_label(node), callee);
    return found ? found->body : NULL;
}

/* In @function and its subgraphs. */
static gboolean
inline_in(KilnFunction *function, bool compiled, GError **error)
{
    kiln_foreach_node_safe (node, function) {
        if (node->op == KILN_OP_vendor_graph ||
            (compiled && node->op == KILN_OP_vendor_executable)) {
            const KilnFunction *body = body_of(node, error);
            if (!body || !kiln_node_inline(node, body, error))
                return FALSE;
            continue;
        }
        kiln_foreach_region (region, node) {
            if (!inline_in(region, compiled, error))
                return FALSE;
        }
    }
    return TRUE;
}

static gboolean
inline_module(KilnModule *module, bool compiled, GError **error)
{
    for (guint i = 0; i < module->functions->len; i++) {
        if (!inline_in(g_ptr_array_index(module->functions, i), compiled, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_module_inline_regions(KilnModule *module, GError **error)
{
    return inline_module(module, false, error);
}

gboolean
kiln_module_inline(KilnModule *module, GError **error)
{
    if (!inline_module(module, true, error))
        return FALSE;
    g_autofree bool *keep = g_new0(bool, module->declarations->len + 1);
    kiln_module_keep_declarations(module, keep);
    return TRUE;
}

bool
kiln_region_is_closed(const KilnNode *node)
{
    const KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    kiln_foreach_node (inner, body) {
        for (uint32_t i = 0; i < inner->n_operands; i++) {
            const KilnValue *value = inner->operands[i].value;
            if (value && kiln_function_find_value(body, value->name) != value)
                return false;
        }
    }
    return body->arguments->len == node->n_operands;
}

bool
kiln_function_is_offloaded(const KilnFunction *function)
{
    for (; function->owner; function = function->owner->function) {
        const KilnOp op = function->owner->op;
        if (op == KILN_OP_vendor_graph || op == KILN_OP_custom_op)
            return true;
    }
    return false;
}
