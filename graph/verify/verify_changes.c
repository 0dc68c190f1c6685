/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of what changed. A function that was valid can only have become invalid at what was
 * touched since, and at what reads or defines it:
 *
 *   a node that was linked, moved, given other operands, attributes or types
 *       is looked at as the whole verifier does; it stands after what it reads
 *   a value whose readers or name changed, and each result of such a node
 *       its chain is whole, every reader is an operand of a node that is there, after its def
 *   a node that was removed                        nothing reads it
 *
 * The place of a node is looked up in the table of the function's order, which the same functions
 * patch that note what is touched; neighbours in the table must be neighbours in the list. Reads
 * across subgraphs are not followed: modules that have some are verified whole. */
#include "graph/module.h"
#include "graph/module/changes.h"
#include "graph/module/sweep.h"
#include "graph/node.h"
#include "graph/order.h"
#include "graph/verify/verify_priv.h"

typedef struct {
    KilnVerify verify;
    const KilnFunction *function;
    const KilnNodeOrder *order;
} Look;

static bool
is_listed(const Look *look, const KilnNode *node)
{
    const KilnNodeOrder *order = look->order;
    if (node->function != look->function || node->id >= look->function->next_id)
        return false;
    uint32_t at = order->at[node->id];
    return at < order->n && order->entries[at].node == node;
}

/* True where @node reads what is there before it. */
static bool
is_defined_before(const Look *look, const KilnValue *value, const KilnNode *node)
{
    const KilnFunction *function = look->function;
    if (value->def)
        return is_listed(look, value->def) && value->index < value->def->n_results &&
               &value->def->results[value->index] == value &&
               kiln_order_before(look->order, value->def, node);
    return value->index < function->arguments->len &&
           &kiln_function_argument(function, value->index)->value == value;
}

/* --- values --- */

static bool
check_value(Look *look, const KilnValue *value)
{
    KilnVerify *verify = &look->verify;
    verify->node = value->def;
    uint32_t n;
    bool seen = value->def && value->def->touched; /* with its node */
    if ((!seen && !kiln_verify_value(verify, value)) || !kiln_verify_chain(verify, value, &n))
        return false;
    kiln_foreach_use (use, value) {
        verify->node = use->user;
        if (!is_listed(look, use->user))
            return kiln_verify_throw(verify, "it reads %%%s, but is no node of the function",
                                     value->name);
        if (!is_defined_before(look, value, use->user))
            return kiln_verify_throw(verify, "operand %u: %%%s is not defined before it",
                                     use->index, value->name);
    }
    return true;
}

/* What check_value() will read of those further on. */
static void
prefetch_values(KilnValue *const *next, size_t left)
{
    if (left <= KILN_AHEAD_NODE)
        return;
    const KilnValue *links = next[KILN_AHEAD_VALUES], *users = next[KILN_AHEAD_DEFS];
    __builtin_prefetch(next[KILN_AHEAD_NODE]);
    __builtin_prefetch(links->def);
    __builtin_prefetch(links->first_use);
    __builtin_prefetch(links->name);
    if (users->first_use)
        __builtin_prefetch(users->first_use->user);
}

/* --- nodes --- */

/* The list around @node is as the table has it. */
static bool
check_place(Look *look, const KilnNode *node)
{
    const KilnNodeOrder *order = look->order;
    uint32_t at = order->at[node->id];
    const KilnNode *before = at ? order->entries[at - 1].node : NULL;
    const KilnNode *after = at + 1 < order->n ? order->entries[at + 1].node : NULL;
    bool front =
        node->previous == before && (before ? before->next : look->function->first) == node;
    bool back = node->next == after && (after ? after->previous : look->function->last) == node;
    return (front && back) || kiln_verify_throw(&look->verify, "the list of %u nodes is broken",
                                                look->function->n_nodes);
}

static bool
check_node(Look *look, const KilnNode *node)
{
    KilnVerify *verify = &look->verify;
    verify->node = node;
    if (!is_listed(look, node))
        return kiln_verify_throw(verify, "it is not where the function lists it");
    if (!check_place(look, node) || !kiln_verify_node(verify))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !is_defined_before(look, value, node))
            return kiln_verify_throw(verify, "operand %u: %%%s is not defined before it", i,
                                     value->name);
        if (!kiln_verify_use(verify, i))
            return false;
    }
    if (!kiln_verify_attrs(verify) || !kiln_verify_results(verify) || !kiln_verify_types(verify))
        return false;
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!node->results[i].touched && !check_value(look, &node->results[i]))
            return false;
    }
    return node != look->function->last || kiln_verify_result_names(verify);
}

static bool
check_removed(Look *look, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnValue *value = &node->results[i];
        look->verify.node = node;
        if (value->n_uses || value->first_use)
            return kiln_verify_throw(&look->verify, "it was removed, but %s reads %%%s",
                                     value->first_use ? kiln_node_label(value->first_use->user)
                                                      : "something",
                                     value->name);
        if (g_hash_table_lookup(look->function->names, value->name) == value)
            return kiln_verify_throw(
                &look->verify, "it was removed, but %%%s is in the table of names", value->name);
    }
    return true;
}

/* Where constants of the module were removed, nodes that nothing touched may refer to them. */
static bool
check_constants(Look *look)
{
    const KilnFunction *function = look->function;
    if (function->changes.removed_constants == function->module->removed_constants)
        return true;
    bool refers[KILN_OP_END] = { false };
    for (uint32_t op = 0; op < KILN_OP_END; op++) {
        const KilnOpInfo *info = kiln_op_info(op);
        for (uint32_t i = 0; i < info->n_attrs; i++)
            refers[op] |= info->attrs[i].kind == KILN_ATTR_CONSTANT;
    }
    for (uint32_t i = 0; i < look->order->n; i++) {
        if (!refers[look->order->ops[i]])
            continue;
        look->verify.node = look->order->entries[i].node;
        if (!kiln_verify_attrs(&look->verify))
            return false;
    }
    return true;
}

static bool
check_changes(Look *look)
{
    const KilnFunction *function = look->function;
    const KilnNode *last = function->last;
    if (look->order->n != function->n_nodes)
        return kiln_verify_throw(&look->verify, "expected %u nodes, found %u", function->n_nodes,
                                 look->order->n);
    if (!last || !kiln_op_has(last->op, KILN_TRAIT_TERMINATOR))
        return kiln_verify_throw(&look->verify, "expected 'return' as the last node");
    const GPtrArray *nodes = function->changes.nodes, *values = function->changes.values;
    for (guint i = 0; i < nodes->len; i++) {
        const KilnNode *node = g_ptr_array_index(nodes, i);
        kiln_prefetch_nodes((KilnNode *const *)nodes->pdata + i, nodes->len - i);
        kiln_prefetch_names((KilnNode *const *)nodes->pdata + i, nodes->len - i);
        if (!(kiln_node_is_linked(node) ? check_node : check_removed)(look, node))
            return false;
    }
    for (guint i = 0; i < values->len; i++) {
        const KilnValue *value = g_ptr_array_index(values, i);
        prefetch_values((KilnValue *const *)values->pdata + i, values->len - i);
        bool removed = value->def && !kiln_node_is_linked(value->def);
        if (!removed && !check_value(look, value))
            return false;
    }
    return check_constants(look);
}

static bool
has_subgraphs(const KilnModule *module)
{
    return module->all_functions->len > module->functions->len;
}

gboolean
kiln_function_verify_changes(KilnFunction *function, GError **error)
{
    if (!function->changes.known || has_subgraphs(function->module)) {
        if (!kiln_function_verify(function, error))
            return FALSE;
        kiln_changes_begin(function);
        return TRUE;
    }
    g_autoptr(KilnArena) scratch = kiln_arena_new();
    KilnVerifyScope scope = { .function = function };
    Look look = {
        .verify = { .module = function->module,
                    .scratch = scratch,
                    .scope = &scope,
                    .error = error },
        .function = function,
        .order = kiln_function_order(function),
    };
    if (!check_changes(&look))
        return FALSE;
    kiln_changes_begin(function);
    return TRUE;
}
