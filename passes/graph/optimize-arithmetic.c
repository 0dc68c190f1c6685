/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-arithmetic: constants to the right, neutral and absorbing numbers, signs, powers, and
 * chains of constants.
 *
 *     c + x        =>  x + c            c < x        =>  x > c          (constants to the right)
 *     x + -0, x - 0, x * 1, x / 1, x ^ 1              =>  x
 *     x * 0 (integers), x - x (integers), x ^ 0       =>  a splat
 *     x * -1, x / -1, -0 - x                          =>  -x
 *     -(-x)  =>  x    x + -y  =>  x - y    x - -y  =>  x + y    -x * -y  =>  x * y
 *     -x * c  =>  x * -c                x / 2^k      =>  x * 2^-k
 *     x ^ 2  =>  x * x    x ^ -1, 1 / x  =>  reciprocal(x)    sum(x, y)  =>  x + y
 *     (x + c) - d  =>  x + (c - d)      (x * c) * d  =>  x * (c * d)    (integers)
 *     (x + c) - y  =>  (x - y) + c      (x * c) * y  =>  (x * y) * c    (integers)
 *     matmul(x, 0), matmul_integer(x, zero point)     =>  a splat       (integers)
 *
 * requires nothing, preserves nothing. `c` is a literal; where a number is named, all its elements
 * are that number. The sums and products of two literals are left to constant-fold.
 *
 * Class E, to the bit: x + -0 and x - +0 are x for every x, x + +0 is not (-0); integers wrap, so
 * that their sums and products may be regrouped; the reciprocal of a power of two is exact; squares
 * and reciprocals of floats below f64 are rounded once, as pow does; quantized numbers saturate and
 * are left alone. Which of two zeros max and min
 * return hangs on the order of their operands. Class L, under the flags that each rule names:
 * signs of zero (x + +0, +0 - x, -(x - y)), NaN and infinity (x * 0, 0 / x, x - x, x / x, x ^ 0.5),
 * regrouping of floats. An integer 0 / x and x / x stay: where x is 0 they are errors. */
#include "graph/base/number.h"
#include "graph/op/additive.h"
#include "graph/op/conv.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

/* --- what rewrites share --- */

/* The number that all elements of ?c are. Where nothing is known of the rank of ?x, a ?c that is no
 * scalar may raise it. */
static bool
uniform(const KilnMatch *match, double *number)
{
    const KilnType *x = &kiln_match_value(match, "x")->type;
    const KilnValue *c = kiln_match_value(match, "c");
    return (x->rank >= 0 || c->type.rank == 0) && kiln_literal_uniform(c, number);
}

static bool
uniformly(const KilnMatch *match, double wanted)
{
    double number;
    return uniform(match, &number) && number == wanted;
}

/* --- constants to the right --- */

static bool
swap_operands(KilnMatch *match, KilnOp op)
{
    KilnNode *root = match->root;
    KilnValue *c = kiln_match_value(match, "c"), *x = kiln_match_value(match, "x");
    GUARD(one_literal, !kiln_value_constant(x));
    KilnValue *operands[] = { x, c };
    return kiln_match_replace(
        match, kiln_match_build_typed(match, op, NULL, operands, 2, &root->results[0].type));
}

static bool
constant_right(KilnMatch *match)
{
    return swap_operands(match, match->root->op);
}

/* True where memory runs out, too. */
static bool
has_zero(const KilnValue *literal, GError **error)
{
    g_autofree double *numbers = kiln_literal_read(literal, error);
    for (int64_t i = 0; numbers && i < kiln_type_elements(&literal->type); i++) {
        if (numbers[i] == 0)
            return true;
    }
    return !numbers;
}

static bool
extreme_constant_right(KilnMatch *match)
{
    const KilnValue *c = kiln_match_value(match, "c");
    GUARD(no_zero, !kiln_dtype_is_float(c->type.dtype) || !has_zero(c, match->error));
    return constant_right(match);
}

static bool
mirror(KilnMatch *match)
{
    static const KilnOp mirrored[KILN_OP_END] = {
        [KILN_OP_less] = KILN_OP_greater,
        [KILN_OP_greater] = KILN_OP_less,
        [KILN_OP_less_or_equal] = KILN_OP_greater_or_equal,
        [KILN_OP_greater_or_equal] = KILN_OP_less_or_equal,
    };
    return swap_operands(match, mirrored[match->root->op]);
}

/* --- neutral and absorbing numbers --- */

static bool
is_neutral(KilnOp op, KilnDType dtype, double number)
{
    if (op == KILN_OP_mul || op == KILN_OP_div)
        return number == 1;
    bool wants_negative = op == KILN_OP_add && kiln_dtype_is_float(dtype);
    return number == 0 && (signbit(number) != 0) == wants_negative;
}

static bool
drop_neutral(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    double number;
    GUARD(number, uniform(match, &number) && is_neutral(match->root->op, x->type.dtype, number));
    return kiln_match_replace(match, x);
}

static bool
drop_zero(KilnMatch *match)
{
    GUARD(number, uniformly(match, 0));
    return kiln_match_replace_by_x(match);
}

static bool
absorb(KilnMatch *match)
{
    GUARD(number, uniformly(match, 0));
    return kiln_match_replace_by_splat(match, 0);
}

static bool
sub_self(KilnMatch *match)
{
    return kiln_match_replace_by_splat(match, 0);
}

static bool
div_self(KilnMatch *match)
{
    return kiln_match_replace_by_splat(match, 1);
}

/* --- signs --- */

static bool
negate(KilnMatch *match)
{
    GUARD(number, uniformly(match, -1));
    KilnValue *x = kiln_match_value(match, "x");
    return kiln_match_replace_by_op(match, KILN_OP_neg, &x, 1);
}

/* 0 - x is +0 where x is +0, and -x is not. */
static bool
zero_minus(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    KilnDType dtype = x->type.dtype;
    double number;
    GUARD(number,
          uniform(match, &number) && number == 0 &&
              (kiln_dtype_is_float(dtype) ? signbit(number) != 0 : kiln_dtype_is_signed(dtype)));
    return kiln_match_replace_by_op(match, KILN_OP_neg, &x, 1);
}

static bool
any_zero_minus(KilnMatch *match)
{
    GUARD(number, uniformly(match, 0));
    KilnValue *x = kiln_match_value(match, "x");
    return kiln_match_replace_by_op(match, KILN_OP_neg, &x, 1);
}

static bool
neg_sub(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "y"), kiln_match_value(match, "x") };
    return kiln_match_replace_by_op(match, KILN_OP_sub, operands, 2);
}

static bool
add_neg(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_match_value(match, "y") };
    return kiln_match_replace_by_op(match, KILN_OP_sub, operands, 2);
}

static bool
sub_neg(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_match_value(match, "y") };
    return kiln_match_replace_by_op(match, KILN_OP_add, operands, 2);
}

static bool
product_of_negs(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_match_value(match, "y") };
    return kiln_match_replace_by_op(match, match->root->op, operands, 2);
}

static bool
neg_into_factor(KilnMatch *match)
{
    KilnNode *root = match->root;
    const KilnValue *c = kiln_match_value(match, "c");
    double number = 0;
    GUARD(uniform, uniform(match, &number));
    KilnValue *opposite =
        kiln_literal_build_splat(match->root->function, root, "neg", &c->type, -number);
    KilnValue *operands[] = { kiln_match_value(match, "x"), opposite };
    return kiln_match_replace_by_op(match, root->op, operands, 2);
}

/* --- powers --- */

/* Of pow. An f64 has no wider type to be rounded from: there x * x and x ^ 2 may differ. */
static bool
is_square(const KilnMatch *match)
{
    KilnDType base = kiln_match_value(match, "x")->type.dtype;
    KilnDType exponent = kiln_match_value(match, "c")->type.dtype;
    bool exact =
        kiln_dtype_is_float(base) ? base != KILN_DTYPE_f64 : kiln_dtype_is_integer(exponent);
    return exact && uniformly(match, 2);
}

static bool
pow_two(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x"), *operands[] = { x, x };
    GUARD(number, is_square(match));
    return kiln_match_replace_by_op(match, KILN_OP_mul, operands, 2);
}

static bool
pow_one(KilnMatch *match)
{
    GUARD(number, uniformly(match, 1));
    return kiln_match_replace_by_x(match);
}

static bool
pow_zero(KilnMatch *match)
{
    GUARD(number, uniformly(match, 0));
    return kiln_match_replace_by_splat(match, 1);
}

static bool
pow_minus_one(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(number, x->type.dtype != KILN_DTYPE_f64 && uniformly(match, -1));
    return kiln_match_replace_by_op(match, KILN_OP_reciprocal, &x, 1);
}

static bool
pow_half(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(number, uniformly(match, 0.5));
    return kiln_match_replace_by_op(match, KILN_OP_sqrt, &x, 1);
}

/* --- quotients --- */

static bool
one_over(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(number, uniformly(match, 1));
    return kiln_match_replace_by_op(match, KILN_OP_reciprocal, &x, 1);
}

/* True for ±2^k where neither it nor its reciprocal is subnormal. */
static bool
is_invertible(KilnDType dtype, double number)
{
    int exponent;
    double smallest = kiln_float_format(dtype)->smallest, size = fabs(number);
    return frexp(size, &exponent) == 0.5 && size >= smallest && 1 / size >= smallest;
}

static bool
div_by_power_of_two(KilnMatch *match)
{
    KilnNode *root = match->root;
    KilnFunction *function = match->root->function;
    const KilnValue *c = kiln_match_value(match, "c");
    const KilnType *type = &c->type;
    g_autofree double *numbers = NULL;
    double number;
    bool same = kiln_literal_uniform(c, &number);
    int64_t n = same ? 1 : kiln_type_elements(type);
    if (!same && !(numbers = kiln_literal_read(c, match->error)))
        return false;
    for (int64_t i = 0; i < n; i++) {
        double divisor = numbers ? numbers[i] : number;
        GUARD(power_of_two, is_invertible(type->dtype, divisor));
        if (numbers)
            numbers[i] = 1 / divisor;
    }
    KilnValue *factor =
        numbers ? kiln_literal_build(function, root, "factor", type, numbers, match->error)
                : kiln_literal_build_splat(function, root, "factor", type, 1 / number);
    KilnValue *operands[] = { kiln_match_value(match, "x"), factor };
    return factor && kiln_match_replace_by_op(match, KILN_OP_mul, operands, 2);
}

static bool
mul_by_reciprocal(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_match_value(match, "y") };
    return kiln_match_replace_by_op(match, KILN_OP_div, operands, 2);
}

static bool
div_by_reciprocal(KilnMatch *match)
{
    KilnValue *operands[] = { kiln_match_value(match, "x"), kiln_match_value(match, "y") };
    return kiln_match_replace_by_op(match, KILN_OP_mul, operands, 2);
}

/* --- chains of constants --- */

/* ?c @op ?d, unless it would be bigger than both. */
static bool
combine(KilnMatch *match, KilnOp op, KilnValue **out)
{
    KilnValue *operands[] = { kiln_match_value(match, "c"), kiln_match_value(match, "d") };
    /* Three literals are for constant-fold, and each of them would be c in turn. */
    GUARD(varying, !kiln_value_constant(kiln_match_value(match, "x")));
    *out = kiln_match_build(match, op, NULL, operands, 2);
    if (!*out)
        return false;
    int64_t most =
        MAX(kiln_type_elements(&operands[0]->type), kiln_type_elements(&operands[1]->type));
    GUARD(no_growth, kiln_type_elements(&(*out)->type) <= most);
    return true;
}

/* (x + c) + d = x + (c + d); (x - c) + d = x - (c - d); and so on, also of * and /. */
static bool
chain(KilnMatch *match)
{
    KilnOp outer = match->root->op, inner = kiln_match_node(match, "inner")->op;
    bool sum = inner == KILN_OP_add || inner == KILN_OP_sub;
    KilnOp same = sum ? KILN_OP_add : KILN_OP_mul, other = sum ? KILN_OP_sub : KILN_OP_div;
    KilnValue *constant;
    if (!combine(match, inner == outer ? same : other, &constant))
        return false;
    KilnValue *operands[] = { kiln_match_value(match, "x"), constant };
    return kiln_match_replace_by_op(match, inner, operands, 2);
}

/* (c - x) + d = (c + d) - x; (c - x) - d = (c - d) - x */
static bool
chain_below(KilnMatch *match)
{
    KilnValue *constant;
    if (!combine(match, match->root->op, &constant))
        return false;
    KilnValue *operands[] = { constant, kiln_match_value(match, "x") };
    return kiln_match_replace_by_op(match, KILN_OP_sub, operands, 2);
}

/* c - (x + d) = (c - d) - x; c - (x - d) = (c + d) - x */
static bool
chain_above(KilnMatch *match)
{
    bool add = kiln_match_node(match, "inner")->op == KILN_OP_add;
    KilnValue *constant;
    if (!combine(match, add ? KILN_OP_sub : KILN_OP_add, &constant))
        return false;
    KilnValue *operands[] = { constant, kiln_match_value(match, "x") };
    return kiln_match_replace_by_op(match, KILN_OP_sub, operands, 2);
}

/* --- constants outward, where they meet others --- */

/* What a product of matrices is biased or scaled by goes into the product itself. */
static bool
is_product(const KilnValue *x)
{
    static const KilnOp products[] = { KILN_OP_conv, KILN_OP_conv_transpose, KILN_OP_matmul,
                                       KILN_OP_gemm, KILN_OP_batch_normalization };
    for (size_t i = 0; i < G_N_ELEMENTS(products); i++) {
        if (kiln_value_def_of(x, products[i]))
            return true;
    }
    return false;
}

/* The same number of elements, or likely fewer. */
static bool
no_bigger(const KilnType *type, const KilnType *than)
{
    int64_t n = kiln_type_likely_elements(type), most = kiln_type_likely_elements(than);
    return n >= 0 && n <= most;
}

/* (x ± c) ± y = (x ± y) ± c; y - (x ± c) = (y - x) ∓ c; (x * c) * y = (x * y) * c. @swapped: y
 * stands to the left. */
static bool
move_outward(KilnMatch *match, bool swapped)
{
    KilnNode *inner = kiln_match_node(match, "inner");
    KilnOp outer = match->root->op, last = inner->op;
    KilnValue *x = kiln_match_value(match, "x"), *y = kiln_match_value(match, "y");
    GUARD(varying, !kiln_value_constant(x) && !kiln_value_constant(y));
    GUARD(no_bias, !is_product(x) && !is_product(y));
    KilnValue *operands[] = { swapped ? y : x, swapped ? x : y };
    KilnValue *varying = kiln_match_build(match, outer, NULL, operands, 2);
    if (!varying)
        return false;
    GUARD(no_more_work, no_bigger(&varying->type, &inner->results[0].type));
    if (swapped && outer == KILN_OP_sub)
        last = last == KILN_OP_add ? KILN_OP_sub : KILN_OP_add;
    KilnValue *outward[] = { varying, kiln_match_value(match, "c") };
    return kiln_match_replace_by_op(match, last, outward, 2);
}

static bool
outward(KilnMatch *match)
{
    return move_outward(match, false);
}

static bool
outward_from_right(KilnMatch *match)
{
    return move_outward(match, true);
}

/* --- products of nothing --- */

/* 0, or what stands for it. */
static bool
is_zero_point(const KilnValue *c, const KilnValue *zero_point)
{
    double number = 0, zero = 0;
    bool known = !zero_point || kiln_literal_uniform(zero_point, &zero);
    return known && kiln_literal_uniform(c, &number) && number == zero;
}

static bool
zero_product(KilnMatch *match)
{
    GUARD(number, is_zero_point(kiln_match_value(match, "c"), NULL));
    return kiln_match_replace_by_splat(match, 0);
}

static bool
zero_integer_product(KilnMatch *match)
{
    const KilnNode *product = match->root;
    const KilnValue *c = kiln_match_value(match, "c");
    uint32_t side = kiln_node_operand(product, 0) == c ? 0 : 1;
    GUARD(number, is_zero_point(c, kiln_node_operand(product, 2 + side)));
    return kiln_match_replace_by_splat(match, 0);
}

#define REASSOC KILN_FLAG(fp_reassoc)
#define SIGNS KILN_FLAG(no_signed_zeros)
#define FINITE KILN_FLAG(finite_math)

// clang-format off
static const KilnRule rules[] = {
    RULE("constant-right", E, "(add|mul|equal|and|or|xor|bitwise_and|bitwise_or|bitwise_xor $c ?x)", constant_right),
    RULE("extreme-constant-right", E, "(max|min $c ?x)", extreme_constant_right),
    RULE("mirror-comparison", E, "(less|greater|less_or_equal|greater_or_equal $c ?x)", mirror),
    RULE("sum-of-two", E, "(sum ?x:float ?y)", sub_neg),

    RULE("neutral-right", E, "(add|sub|mul|div ?x:number $c)", drop_neutral),
    FLAGGED_RULE("zero-right", Z, SIGNS, "(add|sub ?x:float $c)", drop_zero),
    RULE("mul-zero-integer", E, "(mul ?x:int $c)", absorb),
    LOSSY_RULE("mul-zero", FINITE | SIGNS, "(mul ?x:float $c)", absorb),
    LOSSY_RULE("zero-over", FINITE | SIGNS, "(div $c ?x:float)", absorb),
    RULE("sub-self-integer", E, "(sub ?x:int ?x)", sub_self),
    LOSSY_RULE("sub-self", FINITE, "(sub ?x:float ?x)", sub_self),
    LOSSY_RULE("div-self", FINITE, "(div ?x:float ?x)", div_self),

    RULE("minus-one", E, "(mul|div ?x:number $c)", negate),
    RULE("zero-minus", E, "(sub $c ?x:number)", zero_minus),
    FLAGGED_RULE("any-zero-minus", Z, SIGNS, "(sub $c ?x:float)", any_zero_minus),
    RULE("neg-of-neg", E, "(neg (neg ?x:number))", kiln_match_replace_by_x),
    RULE("neg-of-sub-integer", E, "(neg (sub! ?x ?y):signed)", neg_sub),
    FLAGGED_RULE("neg-of-sub", Z, SIGNS, "(neg (sub! ?x ?y):float)", neg_sub),
    RULE("add-of-neg", E, "(add~ ?x:number (neg! ?y))", add_neg),
    RULE("sub-of-neg", E, "(sub ?x:number (neg! ?y))", sub_neg),
    RULE("product-of-negs", E, "(mul|div (neg! ?x):float (neg! ?y))", product_of_negs),
    RULE("neg-into-factor", E, "(mul|div (neg! ?x):float $c)", neg_into_factor),

    RULE("pow-two", E, "(pow ?x:number $c)", pow_two),
    RULE("pow-one", E, "(pow ?x:float $c)", pow_one),
    RULE("pow-zero", E, "(pow ?x:number $c)", pow_zero),
    RULE("pow-minus-one", E, "(pow ?x:float $c)", pow_minus_one),
    LOSSY_RULE("pow-half", FINITE | SIGNS, "(pow ?x:float $c)", pow_half),

    RULE("one-over", E, "(div $c ?x:float)", one_over),
    RULE("div-by-power-of-two", E, "(div ?x:float $c)", div_by_power_of_two),
    LOSSY_RULE("reciprocal-of-reciprocal", REASSOC, "(reciprocal (reciprocal ?x))", kiln_match_replace_by_x),
    LOSSY_RULE("mul-by-reciprocal", REASSOC, "(mul~ ?x:float (reciprocal! ?y))", mul_by_reciprocal),
    LOSSY_RULE("div-by-reciprocal", REASSOC, "(div ?x:float (reciprocal! ?y))", div_by_reciprocal),

    RULE("add-chain-integer", E, "(add|sub (add|sub!#inner ?x $c):int $d)", chain),
    RULE("mul-chain-integer", E, "(mul (mul!#inner ?x $c):int $d)", chain),
    RULE("chain-below-integer", E, "(add|sub (sub! $c ?x):int $d)", chain_below),
    RULE("chain-above-integer", E, "(sub $c (add|sub!#inner ?x $d):int)", chain_above),
    RULE("add-outward-integer", E, "(add|sub (add|sub!#inner ?x $c):int ?y)", outward),
    RULE("add-outward-right-integer", E, "(add|sub ?y (add|sub!#inner ?x $c):int)", outward_from_right),
    RULE("mul-outward-integer", E, "(mul~ (mul!#inner ?x $c):int ?y)", outward),
    LOSSY_RULE("add-chain", REASSOC, "(add|sub (add|sub!#inner ?x $c):float $d)", chain),
    LOSSY_RULE("mul-chain", REASSOC, "(mul|div (mul|div!#inner ?x $c):float $d)", chain),
    LOSSY_RULE("chain-below", REASSOC, "(add|sub (sub! $c ?x):float $d)", chain_below),
    LOSSY_RULE("chain-above", REASSOC, "(sub $c (add|sub!#inner ?x $d):float)", chain_above),
    LOSSY_RULE("add-outward", REASSOC, "(add|sub (add|sub!#inner ?x $c):float ?y)", outward),
    LOSSY_RULE("add-outward-right", REASSOC, "(add|sub ?y (add|sub!#inner ?x $c):float)", outward_from_right),
    LOSSY_RULE("mul-outward", REASSOC, "(mul~ (mul!#inner ?x $c):float ?y)", outward),

    RULE("zero-product-left", E, "(matmul $c ?x:int)", zero_product),
    RULE("zero-product-right", E, "(matmul ?x:int $c)", zero_product),
    RULE("zero-point-product-left", E, "(matmul_integer $c ?x ...)", zero_integer_product),
    RULE("zero-point-product-right", E, "(matmul_integer ?x $c ...)", zero_integer_product),
};
// clang-format on

RULE_PASS(optimize_arithmetic, FORWARD);
