/* SPDX-License-Identifier: Apache-2.0 */
/* cse: of several nodes that compute the same, readers of the later ones read the first.
 *
 *      x   x              x
 *      |   |              |
 *     exp exp     =>     exp          equal op, attributes, operands and result types;
 *      |   |             / \          two operands of a commutative op in either order
 *      a   b            a   b
 *
 * requires nothing, preserves nothing; class E. Never merged: random and stateful ops (dropout too
 * in training mode), side effects, ops with subgraphs, and operators that Kiln does not know. Nodes
 * are listed in topological order, so that one forward sweep finds all there is; what dies is left
 * to dce. */
#include "passes/pass.h"

#include <string.h>

static const char rule[] = "merge-equal";

/* A dropout that drops is a random op; in inference it is none. */
static bool
may_merge(const KilnNode *node, KilnMode mode)
{
    const uint32_t apart =
        KILN_TRAIT_RANDOM | KILN_TRAIT_STATE | KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_REGION;
    return !(kiln_op_info(node->op)->traits & apart) && node->op != KILN_OP_vendor_executable &&
           (node->op != KILN_OP_dropout || mode == KILN_MODE_INFER);
}

/* Swapping the operands of max or sum with more than two could change which NaN or zero wins. */
static bool
commutes(const KilnNode *node)
{
    return kiln_op_has(node->op, KILN_TRAIT_COMMUTATIVE) && node->n_operands == 2 &&
           node->op != KILN_OP_max && node->op != KILN_OP_min;
}

/* A value by where it comes from, never by address: equal whatever the layout of memory. Mixed
 * well, since sums of neighbouring ids would fall on few buckets. */
static uint32_t
value_hash(const KilnValue *value)
{
    if (!value)
        return 0;
    uint32_t hash = value->def ? value->def->id * 2 + 2 : value->index * 2 + 1;
    hash += value->def ? value->index * 2654435761u : 0;
    hash = (hash ^ hash >> 16) * 2146121005u;
    hash = (hash ^ hash >> 15) * 2221713035u;
    return hash ^ hash >> 16;
}

static guint
node_hash(gconstpointer data)
{
    const KilnNode *node = data;
    const KilnOpInfo *info = kiln_op_info(node->op);
    uint32_t hash =
        kiln_attrs_hash(info->attrs, info->n_attrs, node->attrs) * 31 + (uint32_t)node->op;
    if (node->op == KILN_OP_const)
        return hash * 31 + kiln_attrs(node, const)->value->id;
    if (commutes(node))
        return hash * 31 +
               (value_hash(node->operands[0].value) + value_hash(node->operands[1].value));
    for (uint32_t i = 0; i < node->n_operands; i++)
        hash = hash * 31 + value_hash(node->operands[i].value);
    return hash;
}

static bool
operands_equal(const KilnNode *a, const KilnNode *b)
{
    bool straight = true;
    for (uint32_t i = 0; i < a->n_operands; i++)
        straight &= a->operands[i].value == b->operands[i].value;
    if (straight || !commutes(a))
        return straight;
    return a->operands[0].value == b->operands[1].value &&
           a->operands[1].value == b->operands[0].value;
}

static gboolean
node_equal(gconstpointer left, gconstpointer right)
{
    const KilnNode *a = left, *b = right;
    const KilnOpInfo *info = kiln_op_info(a->op);
    if (a->op != b->op || a->n_operands != b->n_operands || a->n_results != b->n_results ||
        !operands_equal(a, b) || !kiln_attrs_equal(info->attrs, info->n_attrs, a->attrs, b->attrs))
        return FALSE;
    for (uint32_t i = 0; i < a->n_results; i++) {
        if (!kiln_type_equal(&a->results[i].type, &b->results[i].type))
            return FALSE;
    }
    return TRUE;
}

static bool
has_readers(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (node->results[i].n_uses)
            return true;
    }
    return false;
}

gboolean
kiln_pass_cse(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)error;
    *changed = false;
    bool constants = kiln_pass_options(context, cse)->constants;
    g_autoptr(GHashTable) seen = g_hash_table_new(node_hash, node_equal);
    kiln_foreach_node (node, function) {
        if (!may_merge(node, kiln_pass_mode(context)) || (node->op == KILN_OP_const && !constants))
            continue;
        KilnNode *first = g_hash_table_lookup(seen, node);
        if (!first) {
            g_hash_table_add(seen, node);
            continue;
        }
        if (!has_readers(node))
            continue; /* merged before, not yet removed */
        for (uint32_t i = 0; i < node->n_results; i++)
            kiln_value_replace(&node->results[i], &first->results[i]);
        kiln_pass_note(context, rule, "%s equals %s", kiln_node_label(node),
                       kiln_node_label(first));
        *changed = true;
    }
    return TRUE;
}
