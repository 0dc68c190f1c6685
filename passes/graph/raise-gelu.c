/* SPDX-License-Identifier: Apache-2.0 */
/* raise-gelu: the formula of GELU becomes the operator.
 *
 *     x · ½ · (1 + erf(x / √2))                          =>  gelu(x)
 *     x · ½ · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))   =>  gelu(x) {approximate="tanh"}
 *
 * Factors may stand in any order and association, divided by 2 or times ½, and the bracket may be
 * multiplied out: x · (½ + ½ · erf(…)); the argument of tanh may be √(2/π) · x · (1 + 0.044715 ·
 * x²), powers written by pow or as products.
 *
 * requires nothing, preserves nothing; class U: the operator rounds once. Nothing inside may have
 * other readers. Runs after constant-fold, which makes literals of the factors. */
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "passes/query/factors.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

/* x · scale · (bias + slope · core(argument)) */
typedef struct {
    KilnValue *x;
    KilnNode *core; /* erf or tanh */
    double scale, bias, slope;
    bool single_reader; /* of the bracket and the core */
} Gate;

/* @sum = bias + slope · core(…) */
static bool
read_bracket(const KilnFunction *function, KilnValue *sum, Gate *gate)
{
    KilnNode *node = kiln_value_def_of(sum, KILN_OP_add);
    if (!node || node->function != function)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        KilnProduct product;
        if (!kiln_literal_uniform(node->operands[i].value, &gate->bias) ||
            !kiln_product_of(function, node->operands[1 - i].value, &product) || product.n != 1)
            continue;
        KilnNode *core = product.factors[0]->def;
        if (!core || core->function != function ||
            (core->op != KILN_OP_erf && core->op != KILN_OP_tanh))
            continue;
        gate->core = core;
        gate->slope = product.scale;
        gate->single_reader = kiln_value_single_use(sum) &&
                              kiln_value_single_use(node->operands[1 - i].value) &&
                              kiln_value_single_use(&core->results[0]);
        return true;
    }
    return false;
}

static bool
read_gate(KilnNode *root, Gate *gate)
{
    KilnProduct product;
    if (!kiln_product_of(root->function, &root->results[0], &product) || product.n != 2)
        return false;
    gate->scale = product.scale;
    for (uint32_t i = 0; i < 2; i++) {
        gate->x = product.factors[1 - i];
        if (read_bracket(root->function, product.factors[i], gate))
            return true;
    }
    return false;
}

/* --- the argument --- */

static bool
is_product(const KilnFunction *function, KilnValue *value, const KilnValue *x, double scale,
           double power)
{
    KilnProduct product;
    double total = 0;
    if (!kiln_product_of(function, value, &product))
        return false;
    for (uint32_t i = 0; i < product.n; i++) {
        const KilnNode *pow = kiln_value_def_of(product.factors[i], KILN_OP_pow);
        double exponent = 1;
        if (pow && pow->operands[0].value == x && pow->function == function &&
            kiln_literal_uniform(pow->operands[1].value, &exponent))
            total += exponent;
        else if (product.factors[i] == x)
            total += 1;
        else
            return false;
    }
    return total == power && kiln_numbers_agree(product.scale, scale, x->type.dtype);
}

/* @sum = first + 0.044715 · x^power, where the first is x itself or 1. */
static bool
is_cubic_sum(const KilnFunction *function, KilnValue *sum, const KilnValue *x, bool of_x)
{
    const KilnNode *node = kiln_value_def_of(sum, KILN_OP_add);
    if (!node || node->function != function)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const KilnValue *first = node->operands[i].value;
        if ((of_x ? first == x : kiln_literal_is(first, 1)) &&
            is_product(function, node->operands[1 - i].value, x, 0.044715, of_x ? 3 : 2))
            return true;
    }
    return false;
}

static bool
is_tanh_argument(const KilnFunction *function, KilnValue *value, const KilnValue *x)
{
    KilnProduct product;
    if (!kiln_product_of(function, value, &product) ||
        !kiln_numbers_agree(product.scale, sqrt(2 / G_PI), x->type.dtype))
        return false;
    if (product.n == 1)
        return is_cubic_sum(function, product.factors[0], x, true);
    if (product.n != 2)
        return false;
    uint32_t own = product.factors[0] == x ? 0 : 1;
    return product.factors[own] == x && is_cubic_sum(function, product.factors[1 - own], x, false);
}

static bool
is_argument(const Gate *gate)
{
    const KilnFunction *function = gate->core->function;
    KilnValue *argument = gate->core->operands[0].value;
    return gate->core->op == KILN_OP_erf ? is_product(function, argument, gate->x, sqrt(0.5), 1)
                                         : is_tanh_argument(function, argument, gate->x);
}

static bool
raise_gelu(KilnMatch *match)
{
    Gate gate;
    if (!read_gate(match->root, &gate))
        return false;
    KilnDType dtype = gate.x->type.dtype;
    GUARD(half, kiln_numbers_agree(gate.scale * gate.bias, 0.5, dtype));
    GUARD(balanced, kiln_numbers_agree(gate.slope, gate.bias, dtype));
    GUARD(argument, is_argument(&gate));
    GUARD(single_reader, gate.single_reader);
    KilnAttrs_gelu attrs = { .approximate = gate.core->op == KILN_OP_tanh ? "tanh" : "none" };
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_gelu, &attrs, &gate.x, 1));
}

static const KilnRule rules[] = {
    RULE("gelu-formula", U, "(mul|div~ ? (add|mul|div ...))", raise_gelu),
};

RULE_PASS(raise_gelu, FORWARD);
