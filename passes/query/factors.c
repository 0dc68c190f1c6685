/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/factors.h"

#include "graph/base/number.h"
#include "graph/node.h"
#include "graph/op/multiplicative.h"
#include "passes/query/literal.h"

#include <math.h>

enum {
    DEPTH = 5 /* of nested products */
};

/* The node behind @value where it belongs to the product alone. */
static const KilnNode *
factor_node(const KilnFunction *function, const KilnValue *value, int depth)
{
    const KilnNode *node = value->def;
    bool own = depth == 0 || kiln_value_single_use(value);
    return node && node->function == function && own && depth < DEPTH ? node : NULL;
}

static bool
collect(const KilnFunction *function, KilnValue *value, int depth, KilnProduct *out)
{
    double number;
    if (kiln_literal_uniform(value, &number)) {
        out->scale *= number;
        return true;
    }
    const KilnNode *node = factor_node(function, value, depth);
    if (node && node->op == KILN_OP_mul)
        return collect(function, node->operands[0].value, depth + 1, out) &&
               collect(function, node->operands[1].value, depth + 1, out);
    if (node && node->op == KILN_OP_div && kiln_literal_uniform(node->operands[1].value, &number)) {
        out->scale /= number;
        return collect(function, node->operands[0].value, depth + 1, out);
    }
    if (out->n == KILN_PRODUCT_FACTORS)
        return false;
    out->factors[out->n++] = value;
    return true;
}

bool
kiln_product_of(const KilnFunction *function, KilnValue *value, KilnProduct *out)
{
    *out = (KilnProduct){ .scale = 1 };
    /* A literal may give dims to what is of any rank. */
    return value->type.rank >= 0 && kiln_dtype_is_float(value->type.dtype) &&
           collect(function, value, 0, out);
}

bool
kiln_numbers_agree(double a, double b, KilnDType dtype)
{
    return fabs(a - b) <= 2 * kiln_float_format(dtype)->epsilon * fabs(b);
}

bool
kiln_literal_is(const KilnValue *value, double number)
{
    double found;
    return value && kiln_literal_uniform(value, &found) &&
           kiln_numbers_agree(found, number, value->type.dtype);
}

bool
kiln_number_fits_attribute(double number, KilnDType dtype)
{
    return dtype != KILN_DTYPE_f64 || (double)(float)number == number;
}

KilnValue *
kiln_other_operand(const KilnNode *node, const KilnValue *other)
{
    KilnValue *a = kiln_node_operand(node, 0), *b = kiln_node_operand(node, 1);
    return a == other ? b : b == other ? a : NULL;
}
