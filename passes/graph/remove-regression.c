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
drop(KilnMatch *match)
{
    GUARD(inference, kiln_pass_mode(match->context) == KILN_MODE_INFER);
    return kiln_match_replace_by_x(match);
}

static const KilnRule rules[] = {
    RULE("regression", E, "(regression ?x ?)", drop),
};

RULE_PASS(remove_regression, FORWARD);
