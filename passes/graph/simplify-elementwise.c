/* SPDX-License-Identifier: Apache-2.0 */
/* simplify-elementwise: element-wise nodes that what they read makes superfluous.
 *
 *     relu(x), abs(x)             =>  x           where x is never negative: a sigmoid, a square, …
 *     abs(-x)                     =>  abs(x)
 *     max(x, x), min(x, x), and(x, x), or(x, x), where(c, x, x)    =>  x
 *     floor(round(x)), sign(sign(x)), …                            =>  round(x), sign(x), …
 *     not(not(x))  =>  x          not(x < y)  =>  x >= y (integers)
 *     and(x, true), or(x, false), xor(x, false)  =>  x             xor(x, true)  =>  not(x)
 *     where(not(c), x, y)         =>  where(c, y, x)
 *     where(c, 1, 0)              =>  cast(c)     where(c, true, false), c == true    =>  c
 *     x | 0, x ^ 0, x & -1, x shifted by 0        =>  x
 *     xor(x, x), x < x, x > x     =>  false       x == x, x <= x, x >= x  =>  true (integers)
 *
 * requires nothing, preserves nothing; class E: -0 and NaN come out as they did. relu keeps a -0,
 * abs does not: abs(relu(x)) goes under no-signed-zeros only (class Z). Comparisons of floats stay
 * where a NaN would tell. */
#include "graph/op/cast.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "passes/query/facts.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

/* --- signs --- */

static bool
drop_relu(KilnMatch *match)
{
    GUARD(never_negative, kiln_never_negative(kiln_match_value(match, "x")));
    return kiln_match_replace_by_x(match);
}

static bool
drop_abs(KilnMatch *match)
{
    GUARD(never_signed, kiln_never_signed(kiln_match_value(match, "x")));
    return kiln_match_replace_by_x(match);
}

static bool
abs_of_neg(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    return kiln_match_replace_by_op(match, KILN_OP_abs, &x, 1);
}

/* --- the inner node has done it already --- */

static bool
keep_inner(KilnMatch *match)
{
    return kiln_match_replace(match, &kiln_match_node(match, "inner")->results[0]);
}

/* --- logic --- */

static bool
drop_equal_choice(KilnMatch *match)
{
    const KilnType *type = &kiln_match_value(match, "x")->type;
    GUARD(rank_known, type->rank >= 0);
    for (int i = 0; i < type->rank; i++)
        GUARD(extents_known, kiln_type_knows_dim(type, i));
    return kiln_match_replace_by_x(match);
}

static bool
choose_the_other(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "c"), kiln_match_value(match, "y"),
                              kiln_match_value(match, "x") };
    return kiln_match_replace_by_op(match, KILN_OP_where, operands, 3);
}

static bool
invert(KilnMatch *match)
{
    static const KilnOp inverted[KILN_OP_END] = {
        [KILN_OP_less] = KILN_OP_greater_or_equal,
        [KILN_OP_less_or_equal] = KILN_OP_greater,
        [KILN_OP_greater] = KILN_OP_less_or_equal,
        [KILN_OP_greater_or_equal] = KILN_OP_less,
    };
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_match_value(match, "y") };
    return kiln_match_replace_by_op(match, inverted[kiln_match_node(match, "inner")->op], operands,
                                    2);
}

/* The bytes that each element of ?c is, where it does not make the result larger. */
static bool
uniform_bytes(const KilnMatch *match, uint8_t element[8])
{
    const KilnValue *x = kiln_match_value(match, "x"), *c = kiln_match_value(match, "c");
    return (x->type.rank >= 0 || c->type.rank == 0) &&
           kiln_tensor_is_splat(kiln_value_constant(c)->tensor, 65536, element);
}

/* Whether all elements of ?c are @wanted. */
static bool
uniformly(const KilnMatch *match, bool wanted)
{
    uint8_t element[8] = { 0 };
    return uniform_bytes(match, element) && (element[0] != 0) == wanted;
}

/* and(x, true), or(x, false), xor(x, false) */
static bool
drop_neutral(KilnMatch *match)
{
    GUARD(neutral, uniformly(match, match->root->op == KILN_OP_and));
    return kiln_match_replace_by_x(match);
}

static bool
xor_true(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(all_true, uniformly(match, true));
    return kiln_match_replace_by_op(match, KILN_OP_not, &x, 1);
}

/* --- numbers for truth --- */

/* The number that all elements of the literal @name are, where they do not make ?x larger. */
static bool
literal_number(const KilnMatch *match, const char *name, double *number)
{
    const KilnValue *x = kiln_match_value(match, "x"), *literal = kiln_match_value(match, name);
    return (x->type.rank >= 0 || literal->type.rank == 0) && kiln_literal_uniform(literal, number);
}

/* where(x, 1, 0); -0 is none that a cast gives. */
static bool
where_of_numbers(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    KilnAttrs_cast attrs = kiln_cast_to(match->root->results[0].type.dtype);
    double one = 0, zero = 1;
    GUARD(one_zero, literal_number(match, "t", &one) && literal_number(match, "f", &zero) &&
                        one == 1 && zero == 0 && !signbit(zero));
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_cast, &attrs, &x, 1));
}

/* where(x, true, false) and where(x, false, true) */
static bool
where_of_bools(KilnMatch *match)
{
    double t = 0, f = 0;
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(opposites,
          literal_number(match, "t", &t) && literal_number(match, "f", &f) && t + f == 1);
    return t == 1 ? kiln_match_replace_by_x(match)
                  : kiln_match_replace_by_op(match, KILN_OP_not, &x, 1);
}

static bool
equal_to_bool(KilnMatch *match)
{
    double wanted = 0;
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(one_bool, literal_number(match, "c", &wanted));
    return wanted == 1 ? kiln_match_replace_by_x(match)
                       : kiln_match_replace_by_op(match, KILN_OP_not, &x, 1);
}

/* --- bits --- */

/* x & -1, x | 0, …: told from bytes, for the greatest u64 is no double. */
static bool
drop_neutral_bits(KilnMatch *match)
{
    const uint8_t neutral = match->root->op == KILN_OP_bitwise_and ? 0xff : 0;
    uint8_t element[8] = { 0 };
    bool same = uniform_bytes(match, element);
    for (size_t i = 0; i < kiln_dtype_size(kiln_match_value(match, "c")->type.dtype); i++)
        same &= element[i] == neutral;
    GUARD(neutral_bits, same);
    return kiln_match_replace_by_x(match);
}

/* --- results that hang on nothing --- */

static bool
is_false(KilnMatch *match)
{
    return kiln_match_replace_by_splat(match, 0);
}

static bool
is_true(KilnMatch *match)
{
    return kiln_match_replace_by_splat(match, 1);
}

/* and(x, false), or(x, true) */
static bool
absorb(KilnMatch *match)
{
    bool or = match->root->op == KILN_OP_or;
    GUARD(absorbs, uniformly(match, or));
    return kiln_match_replace_by_splat(match, or);
}

// clang-format off
static const KilnRule rules[] = {
    RULE("relu-of-positive", E, "(relu ?x)", drop_relu),
    RULE("abs-of-positive", E, "(abs ?x)", drop_abs),
    FLAGGED_RULE("abs-of-relu", Z, KILN_FLAG(no_signed_zeros), "(abs (relu#inner ?):float)", keep_inner),
    RULE("abs-of-abs", E, "(abs (abs#inner ?))", keep_inner),
    RULE("abs-of-neg", E, "(abs (neg! ?x:number))", abs_of_neg),

    RULE("extreme-of-equals", E, "(max|min|and|or|bitwise_and|bitwise_or ?x ?x)", kiln_match_replace_by_x),
    RULE("rounded-twice", E, "(ceil|floor|round (ceil|floor|round#inner ?):float)", keep_inner),
    RULE("sign-of-sign", E, "(sign (sign#inner ?))", keep_inner),

    RULE("not-of-not", E, "(not (not ?x))", kiln_match_replace_by_x),
    RULE("bitwise-not-twice", E, "(bitwise_not (bitwise_not ?x))", kiln_match_replace_by_x),
    RULE("not-of-comparison", E, "(not (less|less_or_equal|greater|greater_or_equal!#inner ?x:int ?y))", invert),
    RULE("where-of-equals", E, "(where ? ?x ?x)", drop_equal_choice),
    RULE("where-of-not", E, "(where (not! ?c) ?x ?y)", choose_the_other),
    RULE("where-one-zero", E, "(where ?x $t:number $f)", where_of_numbers),
    RULE("where-of-bools", E, "(where ?x $t:bool $f)", where_of_bools),
    RULE("equal-to-bool", E, "(equal~ ?x:bool $c)", equal_to_bool),
    RULE("neutral-bits", E, "(bitwise_and|bitwise_or|bitwise_xor~ ?x $c)", drop_neutral_bits),
    RULE("shift-by-zero", E, "(bit_shift ?x $c)", drop_neutral_bits),
    RULE("neutral-bool", E, "(and|or|xor~ ?x $c)", drop_neutral),
    RULE("absorbing-bool", E, "(and|or~ ?x $c)", absorb),
    RULE("xor-true", E, "(xor~ ?x $c)", xor_true),
    RULE("false-of-equals", E, "(xor|bitwise_xor|less|greater ?x ?x)", is_false),
    RULE("true-of-equals", E, "(equal|less_or_equal|greater_or_equal ?x:int ?x)", is_true),
};
// clang-format on

RULE_PASS(simplify_elementwise, FORWARD);
