/* SPDX-License-Identifier: Apache-2.0 */
/* raise-leaky-relu: a choice by sign becomes the operator.
 *
 *     where(x > 0, x, slope · x)      =>  leaky_relu(x) {alpha=slope}
 *     where(x < 0, slope · x, x)      =>  leaky_relu(x) {alpha=slope}; with >= and <= as well
 *
 * requires nothing, preserves nothing; class E: the same products. The slope must not be negative,
 * not even -0, and finite: at 0 the formulas may take the product, the operator never does. */
#include "graph/op/activation.h"
#include "graph/op/logic.h"
#include "graph/op/multiplicative.h"
#include "passes/query/factors.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

static bool
raise_where(KilnMatch *match)
{
    KilnOp compare = kiln_match_node(match, "compare")->op;
    KilnValue *x = kiln_match_value(match, "x");
    bool greater = compare == KILN_OP_greater || compare == KILN_OP_greater_or_equal;
    const KilnValue *kept = kiln_match_value(match, greater ? "yes" : "no");
    const KilnNode *product =
        kiln_value_def_of(kiln_match_value(match, greater ? "no" : "yes"), KILN_OP_mul);
    const KilnValue *factor = product ? kiln_other_operand(product, x) : NULL;
    double zero = 1, slope = -1;
    if (!factor || !kiln_literal_uniform(factor, &slope))
        return false;
    GUARD(same_value, kept == x);
    GUARD(ranked, x->type.rank >= 0); /* else a literal may give it dims */
    GUARD(zero, kiln_literal_uniform(kiln_match_value(match, "zero"), &zero) && zero == 0);
    GUARD(slope, isfinite(slope) && !signbit(slope));
    GUARD(slope_fits, kiln_number_fits_attribute(slope, x->type.dtype));
    KilnAttrs_leaky_relu attrs = { .alpha = (float)slope };
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_leaky_relu, &attrs, &x, 1));
}

static const KilnRule rules[] = {
    RULE("leaky-relu-choice", E,
         "(where (greater|greater_or_equal|less|less_or_equal#compare ?x:float $zero) ?yes ?no)",
         raise_where),
};

RULE_PASS(raise_leaky_relu, FORWARD);
