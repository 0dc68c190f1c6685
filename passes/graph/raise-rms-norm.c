/* SPDX-License-Identifier: Apache-2.0 */
/* raise-rms-norm: a root-mean-square normalization that was written with a mean becomes the
 * operator.
 *
 *     x / √(reduce_mean(x²) + ε)              =>  rms_normalization(x, 1) {axis, epsilon}
 *     rms_normalization(x, 1) · scale         =>  rms_normalization(x, scale)
 *
 * The quotient may be a product with the reciprocal or with a power of -½, the square a pow or a
 * product (passes/query/normalized.h). The mean is of the last dims of x and keeps them. What takes
 * its own mean away first is a layer normalization, and left to raise-layer-norm.
 *
 * requires nothing, preserves nothing; class U: the operator rounds once. Nothing inside may have
 * other readers. The normalized dims must be known, since a kernel wants a scale for each element
 * of them. */
#include "graph/op/norm.h"
#include "passes/query/factors.h"
#include "passes/query/normalized.h"
#include "passes/rule.h"

static bool
is_layer_norm(const KilnNode *root, const KilnNormalized *normalized)
{
    KilnCentred centred;
    return kiln_centred_of(root->function, normalized->x, &centred) &&
           kiln_reduced_dims(centred.mean) == kiln_reduced_dims(normalized->mean);
}

static bool
raise_rms_norm(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnNormalized normalized;
    if (!kiln_normalized_of(root, &normalized))
        return false;
    const KilnType *type = &normalized.x->type;
    int axis = kiln_first_trailing_dim(type, kiln_reduced_dims(normalized.mean));
    GUARD(last_dims, axis >= 0);
    GUARD(keeps_dims, kiln_keeps_dims(normalized.mean));
    GUARD(single_reader, normalized.single_reader);
    GUARD(not_centred, !is_layer_norm(root, &normalized));
    GUARD(epsilon_fits, kiln_number_fits_attribute(normalized.epsilon, type->dtype));
    for (int d = axis; d < type->rank; d++)
        GUARD(known_dims, type->dims[d] >= 0);
    KilnValue *operands[] = { normalized.x, kiln_run_ones(root, type, axis) };
    KilnAttrs_rms_normalization attrs = { .axis = axis - type->rank,
                                          .epsilon = (float)normalized.epsilon,
                                          .stash_type = 1 };
    return kiln_match_replace(
        match, kiln_match_build(match, KILN_OP_rms_normalization, &attrs, operands, 2));
}

static bool
absorb_scale(KilnMatch *match)
{
    KilnNode *norm = kiln_match_node(match, "norm");
    KilnValue *x = kiln_match_value(match, "x"), *scale = NULL;
    int axis = kiln_type_axis(&x->type, kiln_attrs(norm, rms_normalization)->axis);
    GUARD(ones, kiln_literal_is(kiln_match_value(match, "ones"), 1));
    if (axis >= 0)
        scale = kiln_run_parameter(match->root, kiln_match_value(match, "scale"), &x->type, axis,
                                   match->error);
    GUARD(of_the_run, scale != NULL);
    KilnValue *operands[] = { x, scale };
    return kiln_match_replace(
        match, kiln_match_build(match, KILN_OP_rms_normalization, norm->attrs, operands, 2));
}

static const KilnRule rules[] = {
    RULE("rms-norm-formula", U, KILN_NORMALIZED_PATTERN, raise_rms_norm),
    RULE("rms-norm-scale", U, "(mul~ (rms_normalization!#norm ?x $ones) ?scale)", absorb_scale),
};

RULE_PASS(raise_rms_norm, FORWARD);
