/* SPDX-License-Identifier: Apache-2.0 */
/* raise-layer-norm: a layer normalization that was written with means becomes the operator.
 *
 *        x ──────────┐
 *        │           │
 *        │      reduce_mean                                  x   1
 *        │           │                                        \  |
 *        └─── sub ───┘          d                    layer_normalization {axis, epsilon}
 *              │ d                              =>            |
 *     d / √(reduce_mean(d²) + ε)
 *
 *     x · f + (bias - reduce_mean(x) · f)      =>  layer_normalization(x, scale, bias),
 *         f = scale / √(reduce_mean(d²) + ε)           as TensorFlow writes it
 *
 *     layer_normalization(x, 1) · scale        =>  layer_normalization(x, scale)
 *     layer_normalization(x, scale) + bias     =>  layer_normalization(x, scale, bias)
 *
 * The quotient may be a product with the reciprocal or with a power of -½, the square a pow or a
 * product (passes/query/normalized.h). Both means are of the same last dims of x and keep them. A
 * scale or bias that is one number is spread over these dims, one with leading dims of 1 viewed
 * without.
 *
 * requires nothing, preserves nothing; class U: the operator rounds once. Nothing inside may have
 * other readers. The normalized dims must be known, since a kernel wants a scale for each element
 * of them. */
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "passes/query/factors.h"
#include "passes/query/normalized.h"
#include "passes/rule.h"

/* What both ways to write the formula have in common; @axis is the first normalized dim. */
static bool
is_layer_norm(KilnMatch *match, const KilnNormalized *normalized, const KilnCentred *centred,
              int *axis)
{
    const KilnType *type = &centred->x->type;
    uint32_t dims = kiln_reduced_dims(normalized->mean);
    *axis = type->rank - __builtin_popcount(dims);
    GUARD(last_dims, dims != 0 && kiln_first_trailing_dim(type, dims) == *axis);
    GUARD(same_dims, kiln_reduced_dims(centred->mean) == dims);
    GUARD(keeps_dims, kiln_keeps_dims(centred->mean) && kiln_keeps_dims(normalized->mean));
    GUARD(epsilon_fits, kiln_number_fits_attribute(normalized->epsilon, type->dtype));
    return true;
}

static bool
finish(KilnMatch *match, const KilnNormalized *normalized, KilnValue *const operands[3], int axis)
{
    KilnAttrs_layer_normalization attrs = { .axis = axis - operands[0]->type.rank,
                                            .epsilon = (float)normalized->epsilon,
                                            .stash_type = 1 };
    KilnValue *result =
        kiln_match_build(match, KILN_OP_layer_normalization, &attrs, operands, operands[2] ? 3 : 2);
    return kiln_match_replace(match, result);
}

static bool
raise_quotient(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnNormalized normalized;
    KilnCentred centred;
    int axis;
    if (!kiln_normalized_of(root, &normalized) ||
        !kiln_centred_of(root->function, normalized.x, &centred) ||
        !is_layer_norm(match, &normalized, &centred, &axis))
        return false;
    GUARD(single_reader, normalized.single_reader && normalized.x->n_uses == normalized.reads &&
                             kiln_value_single_use(&centred.mean->results[0]));
    const KilnType *type = &centred.x->type;
    for (int d = axis; d < type->rank; d++)
        GUARD(known_dims, type->dims[d] >= 0);
    KilnValue *operands[] = { centred.x, kiln_run_ones(root, type, axis), NULL };
    return finish(match, &normalized, operands, axis);
}

/* @factor = inverse deviation, or its product with a scale. */
static bool
read_factor(const KilnFunction *function, KilnValue *factor, KilnNormalized *normalized,
            KilnValue **scale)
{
    *scale = NULL;
    if (kiln_inverse_of(function, factor, normalized))
        return true;
    const KilnNode *mul = kiln_value_def_of(factor, KILN_OP_mul);
    for (uint32_t i = 0; mul && mul->function == function && i < 2; i++) {
        *scale = mul->operands[1 - i].value;
        if (!kiln_inverse_of(function, mul->operands[i].value, normalized))
            continue;
        normalized->single_reader &= kiln_value_single_use(mul->operands[i].value);
        return true;
    }
    return false;
}

static bool
raise_sum(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnValue *factor = kiln_match_value(match, "factor"), *scale;
    KilnNormalized normalized;
    KilnCentred centred;
    int axis;
    if (!read_factor(root->function, factor, &normalized, &scale) ||
        !kiln_centred_of(root->function, normalized.x, &centred) ||
        centred.mean != kiln_match_node(match, "mean") ||
        !is_layer_norm(match, &normalized, &centred, &axis))
        return false;
    GUARD(readers_inside, normalized.single_reader && normalized.x->n_uses == normalized.reads &&
                              factor->n_uses == 2 && centred.mean->results[0].n_uses == 2);
    const KilnType *type = &centred.x->type;
    KilnValue *bias =
        kiln_run_parameter(root, kiln_match_value(match, "bias"), type, axis, match->error);
    if (bias)
        scale = scale ? kiln_run_parameter(root, scale, type, axis, match->error)
                      : kiln_run_ones(root, type, axis);
    GUARD(of_the_run, scale && bias);
    KilnValue *operands[] = { centred.x, scale, bias };
    return finish(match, &normalized, operands, axis);
}

/* The matched normalization with @parameter as operand @i, which the root multiplies or adds. */
static bool
absorb(KilnMatch *match, uint32_t i)
{
    KilnNode *norm = kiln_match_node(match, "norm"), *root = match->root;
    const KilnType *type = &norm->operands[0].value->type;
    GUARD(one_result, norm->n_results == 1);
    int axis = kiln_type_axis(type, kiln_attrs(norm, layer_normalization)->axis);
    KilnValue *parameter = NULL;
    if (axis >= 0)
        parameter = kiln_run_parameter(root, kiln_match_value(match, "parameter"), type, axis,
                                       match->error);
    GUARD(of_the_run, parameter != NULL);
    KilnValue *operands[] = { norm->operands[0].value, norm->operands[1].value, NULL };
    operands[i] = parameter;
    return kiln_match_replace(
        match, kiln_match_build(match, KILN_OP_layer_normalization, norm->attrs, operands, i + 1));
}

static bool
absorb_scale(KilnMatch *match)
{
    GUARD(ones, kiln_literal_is(kiln_match_value(match, "ones"), 1));
    return absorb(match, 1);
}

static bool
absorb_bias(KilnMatch *match)
{
    return absorb(match, 2);
}

static const KilnRule rules[] = {
    RULE("layer-norm-formula", U, KILN_NORMALIZED_PATTERN, raise_quotient),
    RULE("layer-norm-sum", U,
         "(add~ (mul!~ ?x ?factor) (sub! ?bias (mul!~ (reduce_mean#mean ?x ...) ?factor)))",
         raise_sum),
    RULE("layer-norm-scale", U, "(mul~ (layer_normalization!#norm ?x $ones) ?parameter)",
         absorb_scale),
    RULE("layer-norm-bias", U, "(add~ (layer_normalization!#norm ?x ?scale) ?parameter)",
         absorb_bias),
};

RULE_PASS(raise_layer_norm, FORWARD);
