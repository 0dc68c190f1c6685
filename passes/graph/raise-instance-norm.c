/* SPDX-License-Identifier: Apache-2.0 */
/* raise-instance-norm: instance and group normalizations that exporters compose become one
 * operator.
 *
 *     x : [n, c, ..]
 *     |
 *     reshape : [n, groups, ..]                              x   1, 0
 *     |                                                       \  |
 *     instance_normalization, scale 1, bias 0    =>      group_normalization {num_groups}
 *     |                                                          |
 *     reshape : [n, c, ..]
 *
 *     (x - reduce_mean(x)) / √(variance + ε), means over all dims after the channels
 *                                                =>      instance_normalization(x, 1, 0)
 *
 *     either of them, scale 1 and bias 0, · s    =>      with scale s
 *     either of them, bias 0, + b                =>      with bias b
 *
 * s and b vary along the channels alone, [c, 1, 1], or are one number. The quotient may have the
 * forms of passes/query/normalized.h. The formula over the last of three dims is left to
 * raise-layer-norm: it is a sequence's more often than a line's. Over planes both would take it:
 * this pass comes first.
 *
 * requires nothing, preserves nothing; class U: the operator rounds once. Nothing inside may have
 * other readers. Channels must be known. */
#include "graph/op/norm.h"
#include "passes/query/factors.h"
#include "passes/query/normalized.h"
#include "passes/rule.h"

static bool
raise_group_norm(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &x->type, *inner = &kiln_match_value(match, "groups")->type;
    GUARD(ranked, type->rank >= 3 && inner->rank >= 3);
    GUARD(extents_known, kiln_type_is_known(type));
    GUARD(batch_kept, kiln_type_equal_dims(type, 0, inner, 0));
    int64_t channels = type->dims[1], groups = inner->dims[1];
    GUARD(divides, channels >= 0 && groups > 0 && channels % groups == 0);
    GUARD(plain_scale, kiln_literal_is(kiln_match_value(match, "scale"), 1));
    GUARD(plain_bias, kiln_literal_is(kiln_match_value(match, "bias"), 0));
    KilnValue *operands[] = { x, kiln_channel_number(root, type, "ones", 1),
                              kiln_channel_number(root, type, "zeros", 0) };
    KilnAttrs_group_normalization attrs = {
        .epsilon = kiln_attrs(kiln_match_node(match, "norm"), instance_normalization)->epsilon,
        .num_groups = groups,
        .stash_type = 1,
    };
    return kiln_match_replace(
        match, kiln_match_build(match, KILN_OP_group_normalization, &attrs, operands, 3));
}

static bool
raise_instance_norm(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnNormalized normalized;
    KilnCentred centred;
    if (!kiln_normalized_of(root, &normalized) ||
        !kiln_centred_of(root->function, normalized.x, &centred))
        return false;
    const KilnType *type = &centred.x->type;
    uint32_t dims = kiln_reduced_dims(normalized.mean);
    GUARD(over_planes, type->rank >= 4 && kiln_first_trailing_dim(type, dims) == 2);
    GUARD(same_dims, kiln_reduced_dims(centred.mean) == dims);
    GUARD(keeps_dims, kiln_keeps_dims(centred.mean) && kiln_keeps_dims(normalized.mean));
    GUARD(single_reader, normalized.single_reader && normalized.x->n_uses == normalized.reads &&
                             kiln_value_single_use(&centred.mean->results[0]));
    GUARD(epsilon_fits, kiln_number_fits_attribute(normalized.epsilon, type->dtype));
    GUARD(known_channels, type->dims[1] >= 0);
    KilnValue *operands[] = { centred.x, kiln_channel_number(root, type, "ones", 1),
                              kiln_channel_number(root, type, "zeros", 0) };
    KilnAttrs_instance_normalization attrs = { .epsilon = (float)normalized.epsilon };
    return kiln_match_replace(
        match, kiln_match_build(match, KILN_OP_instance_normalization, &attrs, operands, 3));
}

/* --- scale and bias --- */

/* The normalization with @parameter, which the root multiplies or adds, as operand @i. */
static bool
absorb(KilnMatch *match, uint32_t i)
{
    KilnNode *norm = kiln_match_node(match, "norm");
    const KilnType *type = &norm->operands[0].value->type;
    KilnValue *parameter = NULL;
    if (type->rank >= 2)
        parameter = kiln_channel_parameter(match->root, kiln_match_value(match, "parameter"), type,
                                           match->error);
    GUARD(per_channel, parameter != NULL);
    KilnValue *operands[] = { norm->operands[0].value, norm->operands[1].value,
                              norm->operands[2].value };
    operands[i] = parameter;
    return kiln_match_replace(match, kiln_match_build(match, norm->op, norm->attrs, operands, 3));
}

static bool
absorb_scale(KilnMatch *match)
{
    GUARD(scale_is_one, kiln_literal_is(kiln_match_value(match, "scale"), 1));
    GUARD(bias_is_zero, kiln_literal_is(kiln_match_value(match, "bias"), 0));
    return absorb(match, 1);
}

static bool
absorb_bias(KilnMatch *match)
{
    GUARD(bias_is_zero, kiln_literal_is(kiln_match_value(match, "bias"), 0));
    return absorb(match, 2);
}

#define NORM "(instance_normalization|group_normalization!#norm ?:float ?scale ?bias)"

static const KilnRule rules[] = {
    RULE("group-norm-of-instance-norm", U,
         "(reshape (instance_normalization!#norm (reshape!#groups ?x:float ?) ?scale ?bias) ?)",
         raise_group_norm),
    RULE("instance-norm-formula", U, KILN_NORMALIZED_PATTERN, raise_instance_norm),
    RULE("channel-norm-scale", U, "(mul~ " NORM " ?parameter)", absorb_scale),
    RULE("channel-norm-bias", U, "(add~ " NORM " ?parameter)", absorb_bias),
};

RULE_PASS(raise_instance_norm, FORWARD);
