/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/fold/constness.h"

#include "graph/module/sweep.h"
#include "graph/op/generate.h"
#include "graph/op/offload.h"
#include "graph/op/random.h"

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
    const KilnValue *training = kiln_node_operand(node, 2);
    return node->op == KILN_OP_dropout &&
           (node->function->module->mode == KILN_MODE_TRAIN ||
            (training && !(training->known && training->known->n == 1 && !training->known->v[0])));
}

bool
kiln_node_draws(const KilnNode *node)
{
    return kiln_op_has(node->op, KILN_TRAIT_RANDOM) || drops_at_random(node);
}

bool
kiln_node_is_pure(const KilnNode *node)
{
    const uint32_t apart = KILN_TRAIT_STATE | KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_REGION;
    return !(kiln_op_info(node->op)->traits & apart) && node->op != KILN_OP_vendor_executable &&
           !kiln_node_draws(node);
}

/* What @node adds to what its operands say. */
static KilnConstness
own_constness(const KilnNode *node)
{
    const uint32_t varying = KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_STATE | KILN_TRAIT_TERMINATOR;
    /* no constant holds a sequence, an optional or a map */
    bool opaque = node->op == KILN_OP_vendor_executable ||
                  (node->n_results && kiln_dtype_is_item(node->results[0].type.dtype));
    return opaque || (kiln_op_info(node->op)->traits & varying) || kiln_node_draws(node)
               ? KILN_CONSTNESS_VARYING
               : KILN_CONSTNESS_LITERAL;
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

/* Functions around @function. */
static unsigned
level_of(const KilnFunction *function)
{
    unsigned level = 0;
    for (; function->owner; function = function->owner->function)
        level++;
    return level;
}

/* Lowers what is known of the values that @node reads of each level, of which it is given @level
 * that lie around its own function. */
static void
note_reads(const KilnNode *node, unsigned level, KilnConstness *known_of)
{
    for (uint32_t i = 0; level && i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value || kiln_value_function(value) == node->function)
            continue;
        KilnConstness *known = &known_of[level_of(kiln_value_function(value))];
        KilnConstness own = kiln_value_constness(value);
        *known = MIN(*known, own);
    }
}

/* What the nodes of a region read from around it, and what they do at random, counts for the node
 * that owns the region: arguments of the region are operands of that node. One walk marks all
 * nodes, however deep regions are nested: @known_of, of the @level functions around @function,
 * takes the least that nodes here and further inside read of each. */
static void
mark_nodes(KilnFunction *function, unsigned level, KilnConstness *known_of)
{
    g_autofree KilnConstness *inner = NULL; /* of this function, too: its own values are last */
    kiln_foreach_ordered (node, function) {
        KilnConstness known = node_constness(node);
        note_reads(node, level, known_of);
        if (level && node->op != KILN_OP_return) {
            KilnConstness own = own_constness(node);
            known_of[0] = MIN(known_of[0], own);
        }
        if (kiln_op_has(node->op, KILN_TRAIT_REGION)) {
            if (!inner)
                inner = g_new(KilnConstness, level + 1);
            for (unsigned i = 0; i <= level; i++)
                inner[i] = KILN_CONSTNESS_LITERAL;
            kiln_foreach_region (region, node)
                mark_nodes(region, level + 1, inner);
            for (unsigned i = 0; i <= level; i++) {
                known = MIN(known, inner[i]);
                if (i < level)
                    known_of[i] = MIN(known_of[i], inner[i]);
            }
        }
        node->mark = node->op == KILN_OP_const ? KILN_CONSTNESS_VARYING : known;
    }
}

void
kiln_constness_mark(KilnFunction *function)
{
    unsigned level = level_of(function);
    g_autofree KilnConstness *known_of = g_new(KilnConstness, level + 1);
    for (unsigned i = 0; i < level; i++)
        known_of[i] = KILN_CONSTNESS_LITERAL; /* nobody asks what is read around it */
    mark_nodes(function, level, known_of);
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
