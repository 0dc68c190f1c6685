/* SPDX-License-Identifier: Apache-2.0 */
/* raise-silu: the formulas of SiLU become the operator.
 *
 *     x · sigmoid(x)              =>  swish(x)
 *     x · sigmoid(alpha · x)      =>  swish(x) {alpha}
 *     x / (1 + exp(-x))           =>  swish(x)
 *
 * requires nothing, preserves nothing; class U: the operator rounds once. Nothing else may read
 * what stands inside. */
#include "graph/op/activation.h"
#include "passes/query/factors.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

static bool
replace(KilnMatch *match, double alpha)
{
    KilnValue *x = kiln_match_value(match, "x");
    KilnAttrs_swish attrs = { .alpha = (float)alpha };
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_swish, &attrs, &x, 1));
}

static bool
raise_silu(KilnMatch *match)
{
    return replace(match, 1);
}

/* Else a literal may give it dims. */
static bool
is_ranked(const KilnMatch *match)
{
    return kiln_match_value(match, "x")->type.rank >= 0;
}

static bool
raise_scaled(KilnMatch *match)
{
    double alpha = 0;
    GUARD(ranked, is_ranked(match));
    GUARD(one_number, kiln_literal_uniform(kiln_match_value(match, "alpha"), &alpha));
    GUARD(alpha_fits, kiln_number_fits_attribute(alpha, kiln_match_value(match, "x")->type.dtype));
    return replace(match, alpha);
}

static bool
raise_quotient(KilnMatch *match)
{
    GUARD(ranked, is_ranked(match));
    GUARD(one, kiln_literal_is(kiln_match_value(match, "one"), 1));
    return replace(match, 1);
}

static const KilnRule rules[] = {
    RULE("silu", U, "(mul~ ?x:float (sigmoid! ?x))", raise_silu),
    RULE("silu-scaled", U, "(mul~ ?x:float (sigmoid! (mul!~ ?x $alpha)))", raise_scaled),
    RULE("silu-quotient", U, "(div ?x:float (add!~ (exp! (neg! ?x)) $one))", raise_quotient),
};

RULE_PASS(raise_silu, FORWARD);
