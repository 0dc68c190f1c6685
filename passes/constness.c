/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/constness.h"

#include "graph/sweep.h"

KilnConstness
kiln_value_constness(const KilnValue *value)
{
    if (value->def)
        return value->def->op == KILN_OP_const ? KILN_CONSTNESS_LITERAL : value->def->mark;
    const KilnArgument *argument = (const KilnArgument *)value; /* its first member */
    return argument->variable ? KILN_CONSTNESS_VARYING : argument->constness;
}

bool
kiln_node_is_known(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnValue *value = &node->results[i];
        if (!value->known || kiln_type_elements(&value->type) != value->known->n)
            return false;
    }
    return node->n_results > 0;
}

bool
kiln_op_reads_type_only(KilnOp op)
{
    return op == KILN_OP_shape || op == KILN_OP_size || op == KILN_OP_eye_like;
}

/* Elements that are dropped at random while a model is trained. */
static bool
drops_at_random(const KilnNode *node)
{
    return node->op == KILN_OP_dropout &&
           (node->function->module->mode == KILN_MODE_TRAIN || kiln_node_operand(node, 2));
}

/* What @node adds to what its operands say. */
static KilnConstness
own_constness(const KilnNode *node)
{
    const uint32_t varying =
        KILN_TRAIT_RANDOM | KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_STATE | KILN_TRAIT_TERMINATOR;
    bool opaque = node->op == KILN_OP_vendor_executable;
    return opaque || (kiln_op_info(node->op)->traits & varying) || drops_at_random(node)
               ? KILN_CONSTNESS_VARYING
               : KILN_CONSTNESS_LITERAL;
}

static bool
is_inside(const KilnFunction *function, const KilnFunction *region)
{
    while (function && function != region)
        function = function->owner ? function->owner->function : NULL;
    return function != NULL;
}

static void mark_nodes(KilnFunction *function);

/* What the nodes of @region read from around it, and what they do at random: arguments of the
 * region are operands of its node. */
static KilnConstness
region_constness(const KilnFunction *region, const KilnFunction *outermost)
{
    KilnConstness known = KILN_CONSTNESS_LITERAL;
    kiln_foreach_node (node, region) {
        if (node->op != KILN_OP_return)
            known = MIN(known, own_constness(node));
        for (uint32_t i = 0; i < node->n_operands; i++) {
            const KilnValue *value = node->operands[i].value;
            bool around = value && value->def && !is_inside(value->def->function, outermost);
            bool argument = value && !value->def &&
                            !is_inside(((const KilnArgument *)value)->function, outermost);
            if (around || argument)
                known = MIN(known, kiln_value_constness(value));
        }
        kiln_foreach_region (inner, node)
            known = MIN(known, region_constness(inner, outermost));
    }
    return known;
}

static KilnConstness
node_constness(const KilnNode *node)
{
    if (node->n_results == 0)
        return KILN_CONSTNESS_VARYING;
    bool type_only =
        kiln_op_reads_type_only(node->op) && kiln_type_is_static(&node->operands[0].value->type);
    if (kiln_node_is_known(node) || type_only)
        return KILN_CONSTNESS_LITERAL;
    KilnConstness known = own_constness(node);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value)
            known = MIN(known, kiln_value_constness(value));
    }
    return known;
}

static void
mark_node(KilnNode *node)
{
    KilnConstness known = node_constness(node);
    if (kiln_op_has(node->op, KILN_TRAIT_REGION)) {
        kiln_foreach_region (region, node) {
            mark_nodes(region);
            known = MIN(known, region_constness(region, region));
        }
    }
    node->mark = node->op == KILN_OP_const ? KILN_CONSTNESS_VARYING : known;
}

static void
mark_nodes(KilnFunction *function)
{
    kiln_foreach_ordered (node, function)
        mark_node(node);
}

void
kiln_constness_mark(KilnFunction *function)
{
    mark_nodes(function);
}

void
kiln_constness_clear(KilnFunction *function)
{
    kiln_foreach_ordered (node, function) {
        node->mark = KILN_CONSTNESS_VARYING;
        if (!kiln_op_has(node->op, KILN_TRAIT_REGION))
            continue;
        kiln_foreach_region (region, node)
            kiln_constness_clear(region);
    }
}
