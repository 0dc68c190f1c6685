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
#include <graph/op/math.h>

static bool
drop_both(KilnMatch *match)
{
    return kiln_match_replace(match, kiln_match_value(match, "x"));
}

static bool
abs_of_x(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    /* The least integer is its own negation, and so is its absolute value. */
    GUARD(is_float, kiln_dtype_is_float(x->type.dtype));
    KilnValue *abs = kiln_match_build(match, KILN_OP_abs, NULL, &x, 1);
    return abs && kiln_match_replace(match, abs);
}

static const KilnRule rules[] = {
    RULE("neg-of-neg", E, "(neg (neg ?x))", drop_both),
    RULE("abs-of-neg", E, "(abs (neg ?x))", abs_of_x),
};

static const KilnRuleList double_negation = RULE_LIST(rules, FORWARD);

static const KilnPassInfo passes[] = {
    { .id = "double-negation",
      .level = KILN_LEVEL_GRAPH,
      .numerics = KILN_NUMERICS_E,
      .summary = "drop signs that are flipped twice or lost",
      .rules = &double_negation },
};
KILN_PASS_PLUGIN(passes)
