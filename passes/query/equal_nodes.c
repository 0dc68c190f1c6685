/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/equal_nodes.h"

#include "graph/op/bounds.h"
#include "passes/query/literal.h"

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
    uint32_t index = value->index;
    uint32_t hash = value->def ? value->def->id * 2 + 2 : index * 2 + 1;
    hash += value->def ? index * 2654435761u : 0;
    hash = (hash ^ hash >> 16) * 2146121005u;
    hash = (hash ^ hash >> 15) * 2221713035u;
    return hash ^ hash >> 16;
}

uint32_t
kiln_node_hash(const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    if (node->op == KILN_OP_const)
        return kiln_constant_hash(kiln_attrs(node, const)->value);
    uint32_t hash =
        kiln_attrs_hash(info->attrs, info->n_attrs, node->attrs) * 31 + (uint32_t)node->op;
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

bool
kiln_node_equal(const KilnNode *a, const KilnNode *b)
{
    const KilnOpInfo *info = kiln_op_info(a->op);
    if (a->op == KILN_OP_const && b->op == KILN_OP_const)
        return kiln_constant_same(kiln_attrs(a, const)->value, kiln_attrs(b, const)->value);
    if (a->op != b->op || a->n_operands != b->n_operands || a->n_results != b->n_results ||
        !operands_equal(a, b) || !kiln_attrs_equal(info->attrs, info->n_attrs, a->attrs, b->attrs))
        return false;
    for (uint32_t i = 0; i < a->n_results; i++) {
        if (!kiln_type_equal(&a->results[i].type, &b->results[i].type))
            return false;
    }
    return true;
}
