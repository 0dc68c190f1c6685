/* SPDX-License-Identifier: Apache-2.0 */
/* fold-leaky-relu: the larger of x and a fraction of x is a leaky relu.
 *
 *     x     x   s               x                       x     x   s             x   s
 *     |      \ /                |                       |      \ /               \ /
 *     |      mul     =>    leaky_relu                   |      mul       =>     prelu
 *      \     /              alpha = s                    \     /
 *        max                                               max       s: one number per channel
 *
 *     where(x > 0, x, x * s), where(x < 0, x * s, x)  =>  leaky_relu(x), for any s > 0
 *
 * In any order of operands; it must be the same x that is multiplied (Glow asked only whether max
 * and mul both have it as an operand somewhere, and folded max(a, b * s)).
 *
 * requires nothing, preserves nothing; class E for 0 < s <= 1, where x * s is the larger for x < 0
 * only, zeros keep their signs, and a NaN stays one. For s = 0 an infinite x gives max a NaN and
 * leaky_relu none; for s < 0 zeros change their sign; an f32 must hold s, as the attribute does. */
#include "graph/op/activation.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

/* @s in (0, most], finite, and an f32 without rounding. */
static bool
is_slope(double s, double most)
{
    return s > 0 && s <= most && isfinite(s) && (double)(float)s == s;
}

static bool
replace_by_leaky(KilnMatch *match, double most)
{
    KilnValue *x = kiln_match_value(match, "x"), *s = kiln_match_value(match, "s");
    double number = 0;
    GUARD(slope, (x->type.rank >= 0 || s->type.rank == 0) && kiln_literal_uniform(s, &number) &&
                     is_slope(number, most));
    KilnAttrs_leaky_relu attrs = { .alpha = (float)number };
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_leaky_relu, &attrs, &x, 1));
}

static bool
leaky_of_max(KilnMatch *match)
{
    return replace_by_leaky(match, 1);
}

static bool
leaky_of_where(KilnMatch *match)
{
    const KilnValue *x = kiln_match_value(match, "x"), *z = kiln_match_value(match, "z");
    double number = 1;
    GUARD(zero, (x->type.rank >= 0 || z->type.rank == 0) && kiln_literal_uniform(z, &number) &&
                    number == 0);
    return replace_by_leaky(match, INFINITY);
}

static bool
prelu_of_max(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_match_value(match, "s") };
    const KilnType *x = &operands[0]->type, *s = &operands[1]->type;
    g_autofree double *slopes = kiln_literal_read(operands[1], match->error);
    GUARD(not_larger,
          kiln_type_equal_shape(x, &match->root->results[0].type) && s->rank <= x->rank);
    for (int64_t i = 0, n = slopes ? kiln_type_elements(s) : 0; i < n; i++)
        GUARD(slopes, slopes[i] > 0 && slopes[i] <= 1);
    KilnValue *prelu = slopes ? kiln_match_build(match, KILN_OP_prelu, NULL, operands, 2) : NULL;
    return kiln_match_replace(match, prelu);
}

// clang-format off
static const KilnRule rules[] = {
    RULE("max-of-fraction", E, "(max~ ?x:float (mul~ ?x $s))", leaky_of_max),
    RULE("max-of-fractions", E, "(max~ ?x:float (mul~ ?x $s))", prelu_of_max),
    RULE("where-greater", E, "(where (greater ?x:float $z) ?x (mul~ ?x $s))", leaky_of_where),
    RULE("where-greater-or-equal", E, "(where (greater_or_equal ?x:float $z) ?x (mul~ ?x $s))", leaky_of_where),
    RULE("where-less", E, "(where (less ?x:float $z) (mul~ ?x $s) ?x)", leaky_of_where),
    RULE("where-less-or-equal", E, "(where (less_or_equal ?x:float $z) (mul~ ?x $s) ?x)", leaky_of_where),
};
// clang-format on

RULE_PASS(fold_leaky_relu, FORWARD);
