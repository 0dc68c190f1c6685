/* SPDX-License-Identifier: Apache-2.0 */
/* A pass from outside Kiln's tree, as a list of rules:
 *
 *      x                         x
 *      |                         |
 *     neg                       abs
 *      |         =>    x         |         =>    abs
 *     neg                       neg               |
 *      |                         |                x
 *                               abs
 *
 * Class E: a sign is flipped twice, or lost anyway. Both rules keep what others read: only the
 * outer node's readers are given something else. */
#include <passes/kiln-pass.h>

static bool
drop_both(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    (void)error;
    return kiln_match_replace(match, context, rule, kiln_match_value(match, "x"));
}

static bool
abs_of_x(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    KilnValue *x = kiln_match_value(match, "x");
    /* The least integer is its own negation, and so is its absolute value. */
    GUARD(is_float, kiln_dtype_is_float(x->type.dtype));
    KilnValue *abs = kiln_match_build(match, KILN_OP_abs, NULL, &x, 1, error);
    return abs && kiln_match_replace(match, context, rule, abs);
}

static const KilnRule rules[] = {
    RULE("neg-of-neg", E, "(neg (neg ?x))", drop_both),
    RULE("abs-of-neg", E, "(abs (neg ?x))", abs_of_x),
};

static gboolean
double_negation(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}

static const KilnPassInfo passes[] = {
    { .id = "double-negation",
      .level = KILN_LEVEL_GRAPH,
      .numerics = KILN_NUMERICS_E,
      .summary = "drop signs that are flipped twice or lost",
      .run_graph = double_negation },
};
KILN_PASS_PLUGIN(passes)
