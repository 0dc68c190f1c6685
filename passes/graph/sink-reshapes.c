/* SPDX-License-Identifier: Apache-2.0 */
/* sink-reshapes: moves a reshape below what computes each element by itself, so that such nodes
 * stand side by side and reshapes meet.
 *
 *        x                      x
 *        |                      |
 *     reshape              relu · add 1 · …
 *        |            =>        |
 *     relu · add 1 · …       reshape
 *        |                      |
 *
 * Also flatten, squeeze and unsqueeze. Other operands of the node must be one element each, of no
 * higher rank than x, so that they broadcast to any shape; the data of prelu never does. The
 * reshape must have no other reader: nothing is computed twice. A reshape only moves down, so the
 * pass ends.
 *
 * requires nothing, preserves nothing; class E. */
#include "graph/op/activation.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

/* Operands other than @reshaped broadcast to any shape of @rank. */
static bool
others_are_scalars(const KilnNode *node, const KilnValue *reshaped, int rank)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && value != reshaped &&
            (kiln_type_elements(&value->type) != 1 || value->type.rank > rank))
            return false;
    }
    return true;
}

/* The node with x in place of the reshaped value. */
static KilnNode *
build_above(KilnMatch *match, const KilnValue *reshaped, KilnValue *x)
{
    KilnNode *node = match->root;
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands + 1);
    KilnType type = x->type;
    type.dtype = node->results[0].type.dtype;
    type.quant = node->results[0].type.quant;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        operands[i] = value == reshaped ? x : value;
    }
    KilnNodeSpec spec = { .op = node->op,
                          .name = node->name,
                          .operands = operands,
                          .n_operands = node->n_operands,
                          .attrs = node->attrs,
                          .types = &type,
                          .before = node };
    return kiln_node_new(match->root->function, &spec, match->error);
}

static bool
sink(KilnMatch *match)
{
    KilnNode *node = match->root, *reshape = kiln_match_node(match, "reshape");
    KilnValue *x = kiln_match_value(match, "x"), *reshaped = &reshape->results[0];
    const KilnType *out = &node->results[0].type;
    GUARD(plain, !x->type.layout && !out->layout && !reshaped->type.layout);
    GUARD(not_per_axis, !kiln_quant_is_per_axis(&reshaped->type) && !kiln_quant_is_per_axis(out));
    GUARD(no_blocks, !kiln_node_has_blocks(node));
    GUARD(scalars, others_are_scalars(node, reshaped, MIN(x->type.rank, reshaped->type.rank)));
    KilnNode *above = build_above(match, reshaped, x);
    if (!above)
        return false;
    KilnValue *operands[2] = { &above->results[0], kiln_node_operand(reshape, 1) };
    KilnNodeSpec spec = { .op = reshape->op,
                          .name = reshape->name,
                          .operands = operands,
                          .n_operands = reshape->n_operands,
                          .attrs = reshape->attrs,
                          .types = out };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static bool
sink_right(KilnMatch *match)
{
    GUARD(repeated, match->root->op != KILN_OP_prelu);
    return sink(match);
}

static const KilnRule rules[] = {
    RULE("sink-reshape", E,
         "(@ELEMENTWISE (reshape|flatten|squeeze|unsqueeze#reshape! ?x ...) ...)", sink),
    RULE("sink-reshape-right", E,
         "(@ELEMENTWISE ? (reshape|flatten|squeeze|unsqueeze#reshape! ?x ...) ...)", sink_right),
};

RULE_PASS(sink_reshapes, FORWARD);
