/* SPDX-License-Identifier: Apache-2.0 */
/* dce: removes nodes that no result of the function reaches, then constants of the module that
 * nothing reads any more.
 *
 * requires nothing, preserves nothing, runs anywhere; the manager runs it before every graph pass
 * so that use counts are exact. Kept: side effects, state, `return`, and every argument. A node
 * with several results goes only when none of them is read. A constant goes when no function of
 * the module, subgraphs included, refers to it. One run removes all there is to remove, so that a
 * function which nothing touched since is not looked at again. */
#include "graph/module/sweep.h"
#include "passes/pass.h"

/* Removing a node's subgraph drops reads of values around it, whose defs may be dead then. */
static void
push_operand_defs(const KilnNode *node, GPtrArray *work)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && value->def)
            g_ptr_array_add(work, value->def);
    }
    kiln_foreach_region (region, node) {
        kiln_foreach_node (inner, region)
            push_operand_defs(inner, work);
    }
}

/* Nodes of @function alone: what a subgraph reads of the functions around it is left to their own
 * run, which follows. */
static bool
remove_dead_nodes(KilnFunction *function, KilnPassContext *context)
{
    bool changed = false;
    g_autoptr(GPtrArray) work = g_steal_pointer(&function->doubtful);
    if (!work) {
        work = g_ptr_array_new();
        kiln_foreach_node (node, function)
            g_ptr_array_add(work, node);
    }
    while (work->len) {
        kiln_prefetch_last((KilnNode *const *)work->pdata, work->len);
        KilnNode *node = g_ptr_array_remove_index(work, work->len - 1);
        if (node->function != function || !kiln_node_is_linked(node) || !kiln_node_is_dead(node))
            continue;
        push_operand_defs(node, work);
        kiln_pass_note(context, "remove-node", "%s (%s)", kiln_node_label(node),
                       kiln_op_info(node->op)->name);
        kiln_node_remove(node);
        changed = true;
    }
    function->doubtful = g_ptr_array_new(); /* from here on, what loses a reader */
    return changed;
}

/* Of few operators: constants and what has subgraphs. */
static bool
refers(KilnOp op)
{
    const KilnOpInfo *info = kiln_op_info(op);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (info->attrs[i].kind == KILN_ATTR_CONSTANT || info->attrs[i].kind == KILN_ATTR_FUNCTION)
            return true;
    }
    return false;
}

/* The nodes of @function that may refer to a constant. */
static GPtrArray *
find_referring(KilnFunction *function, const bool *refers_by_op)
{
    const KilnNodeOrder *order = kiln_function_order(function);
    GPtrArray *nodes = g_ptr_array_new();
    for (uint32_t n = 0; n < order->n; n++) {
        if (refers_by_op[order->ops[n]])
            g_ptr_array_add(nodes, order->entries[n].node);
    }
    return nodes;
}

/* What is read of nodes further on: attributes, and what these point to first. */
static void
prefetch_attrs(KilnNode *const *next, guint left)
{
    if (left <= KILN_AHEAD_NODE)
        return;
    const KilnNode *attrs = next[KILN_AHEAD_VALUES], *constants = next[KILN_AHEAD_DEFS];
    __builtin_prefetch(next[KILN_AHEAD_NODE]);
    __builtin_prefetch(attrs->attrs);
    if (constants->op == KILN_OP_const)
        __builtin_prefetch(kiln_attrs(constants, const)->value);
}

static void
mark_constants(KilnFunction *function, const bool *refers_by_op, bool *unread)
{
    g_autoptr(GPtrArray) nodes = find_referring(function, refers_by_op);
    for (guint n = 0; n < nodes->len; n++) {
        const KilnNode *node = g_ptr_array_index(nodes, n);
        prefetch_attrs((KilnNode *const *)nodes->pdata + n, nodes->len - n);
        const KilnOpInfo *info = kiln_op_info(node->op);
        for (uint32_t i = 0; i < info->n_attrs; i++) {
            const void *field = (char *)node->attrs + info->attrs[i].offset;
            if (info->attrs[i].kind == KILN_ATTR_CONSTANT) {
                const KilnConstant *constant = *(const KilnC_CONSTANT *)field;
                if (constant)
                    unread[constant->id] = false;
            } else if (info->attrs[i].kind == KILN_ATTR_FUNCTION) {
                KilnFunction *region = *(const KilnC_FUNCTION *)field;
                if (region)
                    mark_constants(region, refers_by_op, unread);
            }
        }
    }
}

static bool
remove_unread_constants(KilnModule *module, KilnPassContext *context)
{
    if (!module->doubtful_constants)
        return false;
    module->doubtful_constants = false;
    guint n = module->constants->len;
    g_autofree bool *unread = g_new(bool, n + 1);
    for (guint i = 0; i < n; i++)
        unread[i] = true;
    bool refers_by_op[KILN_OP_END];
    for (uint32_t op = 0; op < KILN_OP_END; op++)
        refers_by_op[op] = refers(op);
    for (guint i = 0; i < module->functions->len; i++)
        mark_constants(g_ptr_array_index(module->functions, i), refers_by_op, unread);
    for (guint i = 0; i < module->declarations->len; i++) {
        const KilnDeclaration *declaration = g_ptr_array_index(module->declarations, i);
        if (declaration->body)
            mark_constants(declaration->body, refers_by_op, unread);
    }
    bool changed = false;
    for (guint i = 0; i < n; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        if (!unread[i])
            continue;
        kiln_pass_note(context, "remove-constant", "@%s", constant->name);
        changed = true;
    }
    if (changed)
        kiln_module_remove_constants(module, unread);
    return changed;
}

GRAPH_PASS(dce);

gboolean
kiln_pass_dce(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    *changed = false;
    if (function->swept == function->module->stamp)
        return TRUE;
    *changed = remove_dead_nodes(function, context);
    /* Constants belong to the module: one look per sweep over its functions, at the outermost. */
    if (!function->owner)
        *changed |= remove_unread_constants(function->module, context);
    function->swept = function->module->stamp;
    return TRUE;
}
