/* SPDX-License-Identifier: Apache-2.0 */
/* raise-silu: the formulas of SiLU become the operator.
 *
 *     x · sigmoid(x)              =>  swish(x)
 *     x · sigmoid(alpha · x)      =>  swish(x) {alpha}
 *     x / (1 + exp(-x))           =>  swish(x)
 *
 * requires nothing, preserves nothing; class U: the operator rounds once. Nothing else may read
 * what stands inside. */
#include "passes/rule.h"

#include "passes/query/literal.h"
#include "passes/query/factors.h"

static bool
replace(KilnMatch *match, KilnPassContext *context, const char *rule, double alpha, GError **error)
{
    KilnValue *x = kiln_match_value(match, "x");
    KilnAttrs_swish attrs = { .alpha = (float)alpha };
    KilnValue *result = kiln_match_build(match, KILN_OP_swish, &attrs, &x, 1, error);
    return result && kiln_match_replace(match, context, rule, result);
}

static bool
raise_silu(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    return replace(match, context, rule, 1, error);
}

/* Else a literal may give it dims. */
static bool
is_ranked(const KilnMatch *match)
{
    return kiln_match_value(match, "x")->type.rank >= 0;
}

static bool
raise_scaled(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    double alpha = 0;
    GUARD(ranked, is_ranked(match));
    GUARD(one_number, kiln_literal_uniform(kiln_match_value(match, "alpha"), &alpha));
    GUARD(alpha_fits, kiln_number_fits_attribute(alpha, kiln_match_value(match, "x")->type.dtype));
    return replace(match, context, rule, alpha, error);
}

static bool
raise_quotient(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    GUARD(ranked, is_ranked(match));
    GUARD(one, kiln_literal_is(kiln_match_value(match, "one"), 1));
    return replace(match, context, rule, 1, error);
}

static const KilnRule rules[] = {
    RULE("silu", U, "(mul~ ?x:float (sigmoid! ?x))", raise_silu),
    RULE("silu-scaled", U, "(mul~ ?x:float (sigmoid! (mul!~ ?x $alpha)))", raise_scaled),
    RULE("silu-quotient", U, "(div ?x:float (add!~ (exp! (neg! ?x)) $one))", raise_quotient),
};

const KilnRule *
kiln_pass_rules_raise_silu(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_raise_silu(KilnFunction *function, KilnPassContext *context, bool *changed,
                     GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
