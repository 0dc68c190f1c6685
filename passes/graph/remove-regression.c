/* SPDX-License-Identifier: Apache-2.0 */
/* remove-regression: what trains a value towards another is gone where nothing is trained.
 *
 *     x    expected             x
 *      \    /                   |
 *     regression        =>      |
 *         |                     |
 *
 * requires nothing, preserves nothing; class E: a regression returns its first operand. Only in
 * inference mode; in training mode it is what the gradient begins at. */
#include "passes/rule.h"

static bool
drop(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    (void)error;
    GUARD(inference, kiln_pass_mode(context) == KILN_MODE_INFER);
    return kiln_match_replace(match, context, rule, kiln_match_value(match, "x"));
}

static const KilnRule rules[] = {
    RULE("regression", E, "(regression ?x ?)", drop),
};

const KilnRule *
kiln_pass_rules_remove_regression(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_remove_regression(KilnFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
