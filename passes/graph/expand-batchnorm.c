/* SPDX-License-Identifier: Apache-2.0 */
/* expand-batchnorm: a batch normalization in inference mode that nothing has absorbed becomes a
 * product and a sum per channel.
 *
 *     x: [N,C,…]                              x    A: [C,1,…]
 *      |   scale, bias, mean, var              \  /
 *     batch_normalization            =>        mul   B: [C,1,…]    A = scale / sqrt(var + epsilon)
 *      |                                         \  /              B = bias - mean · A
 *     [N,C,…]                                    add
 *
 * Element-wise operators go through memory together with what stands around them, an activation
 * as a rule; a batch normalization goes alone.
 *
 * requires nothing, preserves nothing; class U: A and B are rounded once to the element type, from
 * double. Statistics must be literal, and finite in the element type as A and B. Constants are
 * never changed in place: others may read them. */
#include "passes/affine.h"
#include "passes/literal.h"
#include "passes/rule.h"

static KilnValue *
build_per_channel(KilnMatch *match, const char *what, const double *numbers, GError **error)
{
    KilnNode *bn = kiln_match_root(match);
    const KilnType *type = &bn->results[0].type;
    int64_t dims[KILN_MAX_RANK] = { kiln_type_elements(&bn->operands[1].value->type) };
    for (int d = 1; d < type->rank - 1; d++)
        dims[d] = 1;
    KilnType vector = kiln_type_make(type->dtype, type->rank - 1, dims);
    g_autofree char *name = g_strdup_printf("%s_%s", kiln_node_label(bn), what);
    return kiln_literal_build(kiln_match_function(match), bn, name, &vector, numbers, error);
}

static bool
expand(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    KilnNode *bn = kiln_match_root(match);
    const KilnType *type = &bn->results[0].type;
    GUARD(inference, kiln_pass_mode(context) == KILN_MODE_INFER && kiln_batchnorm_infers(bn));
    GUARD(known_rank, type->rank >= 2);
    g_auto(KilnAffine) affine = { 0 };
    GUARD(plain_statistics,
          kiln_affine_init(&affine, kiln_type_elements(&bn->operands[1].value->type), error) &&
              kiln_affine_append_batchnorm(&affine, bn, error));
    GUARD(fits, kiln_affine_fits(&affine, type->dtype));
    KilnValue *scale = build_per_channel(match, "scale", affine.factor, error);
    KilnValue *shift = scale ? build_per_channel(match, "shift", affine.offset, error) : NULL;
    if (!shift)
        return false;
    KilnValue *product[] = { bn->operands[0].value, scale };
    KilnValue *scaled = kiln_match_build(match, KILN_OP_mul, NULL, product, 2, error);
    KilnValue *sum[] = { scaled, shift };
    return scaled && kiln_match_replace_by_op(match, context, rule, KILN_OP_add, sum, 2, error);
}

static const KilnRule rules[] = {
    RULE("batchnorm-to-arithmetic", U, "(batch_normalization ? $ $ $ $):float", expand),
};

const KilnRule *
kiln_pass_rules_expand_batchnorm(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_expand_batchnorm(KilnFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
