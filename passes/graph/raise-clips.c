/* SPDX-License-Identifier: Apache-2.0 */
/* raise-clips: a clip goes above what only moves or repeats elements, next to what computes them.
 *
 *       x                    x
 *       |                    |
 *     move                clip, relu
 *       |          =>        |            move: reshape, flatten, squeeze, unsqueeze, transpose,
 *   clip, relu             move                 expand, tile, depth_to_space, space_to_depth
 *       |                    |
 *
 * requires nothing, preserves nothing; class E. The move must have no other reader. A clip stays
 * below a slice, above which it would clip more than is read; below expand and tile it clips
 * elements many times over. sink-transposes and sink-reshapes move in the same direction. */
#include "passes/rule.h"

static bool
raise_clip(KilnMatch *match)
{
    KilnNode *root = match->root, *move = kiln_match_node(match, "move");
    const KilnType *type = &root->results[0].type;
    GUARD(same_type, kiln_type_equal(type, &move->results[0].type));
    KilnValue *clip_operands[] = { kiln_match_value(match, "x"), kiln_node_operand(root, 1),
                                   kiln_node_operand(root, 2) };
    KilnValue *clip = kiln_match_build(match, root->op, NULL, clip_operands, root->n_operands);
    if (!clip)
        return false;
    KilnValue *move_operands[] = { clip, kiln_node_operand(move, 1) };
    KilnNodeSpec spec = { .op = move->op,
                          .operands = move_operands,
                          .n_operands = move->n_operands,
                          .attrs = move->attrs,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

// clang-format off
static const KilnRule rules[] = {
    RULE("clip-above-move", E, "(clip|relu (reshape|flatten|squeeze|unsqueeze|transpose|expand|tile|depth_to_space|space_to_depth!#move ?x ...) ...)", raise_clip),
};
// clang-format on

RULE_PASS(raise_clips, FORWARD);
