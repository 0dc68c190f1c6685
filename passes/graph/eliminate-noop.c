/* SPDX-License-Identifier: Apache-2.0 */
/* eliminate-noop: nodes that return an operand unchanged go.
 *
 *      x            x        for identity; dropout in inference mode; a cast to the same type; pad,
 *      |            |        slice, tile, expand, reshape, flatten, squeeze and unsqueeze whose
 *     noop    =>    |        result has the operand's type; a pool with kernel 1, stride 1 and no
 *      |            |        pads; concat, sum, mean, max and min of one operand; where with a
 *                            uniform condition; a clip without bounds; a split that keeps all in
 *                            its first part
 *
 * requires nothing, preserves nothing; class E. The types must be equal, quantization included: a
 * quantized pool that rescales is no no-op. */
#include "graph/op/pool.h"
#include "passes/rule.h"

/* Of nodes with several results: one that only the others keep has nothing to be replaced. */
static bool
drop_first(KilnMatch *match)
{
    GUARD(used, match->root->results[0].n_uses > 0);
    return kiln_match_replace_by_x(match);
}

/* Any rank equals any other as long as neither is known. */
static bool
drop_ranked(KilnMatch *match)
{
    GUARD(rank_known, kiln_match_value(match, "x")->type.rank >= 0);
    return kiln_match_replace_by_x(match);
}

/* Equal types say that nothing was cut, repeated or arranged anew, but only where every extent is
 * known, by number or by name: `?` equals `?` whatever they stand for. */
static bool
drop_same_extents(KilnMatch *match)
{
    const KilnType *type = &kiln_match_value(match, "x")->type;
    for (int i = 0; i < type->rank; i++)
        GUARD(extents_known, kiln_type_knows_dim(type, i));
    return drop_ranked(match);
}

static bool
drop_split(KilnMatch *match)
{
    GUARD(used, match->root->results[0].n_uses > 0);
    return drop_same_extents(match);
}

/* In training mode dropout drops; an explicit training_mode operand must be literally false. */
static bool
drop_dropout(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnValue *training = kiln_node_operand(node, 2);
    bool off =
        !training || (training->known && training->known->n == 1 && training->known->v[0] == 0);
    GUARD(inference, off && kiln_pass_mode(match->context) == KILN_MODE_INFER);
    return drop_first(match);
}

/* Backwards, everything would be kept too. */
static bool
drop_slice(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnValue *steps = kiln_node_operand(node, 4);
    GUARD(steps_known, !steps || steps->known);
    for (int64_t i = 0; steps && i < steps->known->n; i++)
        GUARD(forward, steps->known->v[i] == 1);
    return drop_same_extents(match);
}

static bool
drop_pad(KilnMatch *match)
{
    const KilnKnown *pads = match->root->operands[1].value->known;
    GUARD(pads_known, pads != NULL);
    for (int64_t i = 0; i < pads->n; i++)
        GUARD(pads_zero, pads->v[i] == 0); /* -1 and 1 shift, though the shape stays */
    return kiln_match_replace_by_x(match);
}

static bool
drop_max_pool(KilnMatch *match)
{
    const KilnAttrs_max_pool *attrs = kiln_attrs(match->root, max_pool);
    GUARD(one_by_one, attrs->kernel_shape.n && kiln_ints_all(attrs->kernel_shape, 1));
    GUARD(stride_one, kiln_ints_all(attrs->strides, 1));
    GUARD(no_pads, kiln_ints_all(attrs->pads, 0));
    return drop_first(match);
}

static bool
drop_average_pool(KilnMatch *match)
{
    const KilnAttrs_average_pool *attrs = kiln_attrs(match->root, average_pool);
    GUARD(one_by_one, attrs->kernel_shape.n && kiln_ints_all(attrs->kernel_shape, 1));
    GUARD(stride_one, kiln_ints_all(attrs->strides, 1));
    GUARD(no_pads, kiln_ints_all(attrs->pads, 0));
    return kiln_match_replace_by_x(match);
}

/* where(all true, x, y) is x, where it is not broadcast. */
static bool
drop_where(KilnMatch *match)
{
    const KilnConstant *condition = kiln_value_constant(kiln_match_value(match, "c"));
    uint8_t element[8] = { 0 };
    GUARD(uniform, kiln_tensor_is_splat(condition->tensor, 65536, element));
    KilnValue *chosen = kiln_match_value(match, element[0] ? "x" : "y");
    for (int i = 0; i < chosen->type.rank; i++)
        GUARD(extents_known, kiln_type_knows_dim(&chosen->type, i));
    GUARD(rank_known, chosen->type.rank >= 0);
    return kiln_match_replace(match, chosen);
}

static bool
drop_clip(KilnMatch *match)
{
    const KilnNode *node = match->root;
    GUARD(unbounded, !kiln_node_operand(node, 1) && !kiln_node_operand(node, 2));
    return kiln_match_replace_by_x(match);
}

static const KilnRule rules[] = {
    RULE("identity", E, "(identity ?x)", kiln_match_replace_by_x),
    RULE("dropout", E, "(dropout ?x ...)", drop_dropout),
    RULE("cast-same", E, "(cast ?x)", kiln_match_replace_by_x),
    RULE("pad-nothing", E, "(pad ?x ? ...)", drop_pad),
    RULE("slice-all", E, "(slice ?x ? ? ...)", drop_slice),
    RULE("tile-once", E, "(tile ?x ?)", drop_same_extents),
    RULE("expand-same", E, "(expand ?x ?)", drop_same_extents),
    RULE("reshape-same", E, "(reshape ?x ?)", drop_same_extents),
    RULE("flatten-same", E, "(flatten ?x)", kiln_match_replace_by_x),
    RULE("squeeze-nothing", E, "(squeeze ?x ...)", drop_ranked),
    RULE("unsqueeze-nothing", E, "(unsqueeze ?x ?)", drop_ranked),
    RULE("split-whole", E, "(split#s.0 ?x ...)", drop_split),
    RULE("max-pool-1x1", E, "(max_pool ?x)", drop_max_pool),
    RULE("average-pool-1x1", E, "(average_pool ?x)", drop_average_pool),
    RULE("concat-one", E, "(concat ?x)", kiln_match_replace_by_x),
    RULE("variadic-one", E, "(sum|mean|max|min ?x)", kiln_match_replace_by_x),
    RULE("where-uniform", E, "(where $c ?x ?y)", drop_where),
    RULE("clip-unbounded", E, "(clip ?x ...)", drop_clip),
};

RULE_PASS(eliminate_noop, FORWARD);
