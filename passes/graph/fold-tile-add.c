/* SPDX-License-Identifier: Apache-2.0 */
/* fold-tile-add: what an element-wise node broadcasts anyway need not be repeated first.
 *
 *     x: [1,64]                     x: [1,64]
 *        |                             |
 *     tile, expand      y: [8,64]      |      y: [8,64]
 *         \             /               \     /
 *          add [8,64]          =>      add [8,64]
 *
 * Any element-wise operator with broadcasting, and any of its operands but the one that must not be
 * broadcast: the data of prelu. requires nothing, preserves nothing; class E. Every extent of the
 * result must be known and the same without the repetition; a tile may repeat only extents of 1,
 * for others come round again and broadcasting has no word for that. */
#include "graph/infer/infer.h"
#include "graph/op/activation.h"
#include "graph/op/expand.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

/* The shape of @node with operand @i of another shape is what it was. */
static bool
keeps_shape(const KilnNode *node, uint32_t i, const KilnType *other)
{
    const KilnType *type = &node->results[0].type;
    KilnType shape = *other;
    for (uint32_t k = 0; k < node->n_operands; k++) {
        if (k != i &&
            !kiln_infer_broadcast_shapes(&shape, &node->operands[k].value->type, &shape, NULL))
            return false;
    }
    return kiln_type_same_shape(&shape, type);
}

static bool
fold(KilnMatch *match)
{
    KilnNode *root = match->root, *repeat = kiln_match_node(match, "repeat");
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &root->results[0].type;
    uint32_t at = root->op == KILN_OP_prelu ? 1 : 0; /* both of its operands may be the same */
    while (root->operands[at].value != &repeat->results[0])
        at++;
    GUARD(ones_repeated, repeat->op == KILN_OP_expand || kiln_tile_broadcasts(repeat));
    GUARD(extents_known, kiln_type_is_known(type));
    GUARD(same_shape, keeps_shape(root, at, &x->type));
    g_autofree KilnValue **operands = g_new(KilnValue *, root->n_operands);
    for (uint32_t i = 0; i < root->n_operands; i++)
        operands[i] = i == at ? x : root->operands[i].value;
    KilnNodeSpec spec = { .op = root->op,
                          .operands = operands,
                          .n_operands = root->n_operands,
                          .attrs = root->attrs,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

#define REPEAT "(expand|tile#repeat ?x ?)"
#define BROADCASTING                                                                               \
    "add|sub|mul|div|pow|mod|max|min|sum|mean|equal|greater|greater_or_equal|less|"                \
    "less_or_equal|and|or|xor|bitwise_and|bitwise_or|bitwise_xor|bit_shift"

static const KilnRule rules[] = {
    RULE("repeated-left", E, "(" BROADCASTING "|where " REPEAT " ? ...)", fold),
    RULE("repeated-right", E, "(" BROADCASTING "|where|prelu ? " REPEAT " ...)", fold),
    RULE("repeated-choice", E, "(where ? ? " REPEAT ")", fold),
};

RULE_PASS(fold_tile_add, FORWARD);
