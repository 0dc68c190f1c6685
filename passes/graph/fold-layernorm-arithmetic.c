/* SPDX-License-Identifier: Apache-2.0 */
/* fold-layernorm-arithmetic: what a layer normalization's result is multiplied with or added to
 * goes into its scale and bias.
 *
 *     layer_normalization(x, scale, bias) · c    =>  layer_normalization(x, scale · c, bias · c)
 *     layer_normalization(x, scale, bias) + c    =>  layer_normalization(x, scale, bias + c)
 *
 * Products and sums of scale and bias are new nodes, which constant-fold evaluates: scale and bias
 * themselves may have other readers, who keep them (Glow replaces all readers).
 *
 * requires nothing, preserves nothing; class U: roundings differ. The normalization must have no
 * other reader and no further results, c an element for each of the normalized dims, or one. A
 * factor must be small enough for its products with scale and bias to be finite, and large enough
 * for the largest of them to stay normal numbers. Where something is added to a bias, the sum in
 * front of it may lose no more than kiln_sum_keeps_precision() allows. No product or sum may be one
 * of 16-bit floats, which would round it: lower-halves makes f32 of them first. */
#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/op/additive.h"
#include "graph/op/multiplicative.h"
#include "graph/op/norm.h"
#include "passes/query/affine.h"
#include "passes/query/literal.h"
#include "passes/query/normalized.h"
#include "passes/rule.h"

#include <math.h>

/* The literal as an operand of the normalization; NULL where it is none. */
static KilnValue *
parameter_of(KilnMatch *match)
{
    const KilnNode *norm = kiln_match_node(match, "norm");
    const KilnType *type = &norm->operands[0].value->type;
    int axis = kiln_type_axis(type, kiln_attrs(norm, layer_normalization)->axis);
    return axis < 0 ? NULL
                    : kiln_run_parameter(match->root, kiln_match_value(match, "c"), type, axis,
                                         match->error);
}

/* The largest magnitude of @value; @otherwise where it is no literal. */
static double
largest(const KilnValue *value, double otherwise, GError **error)
{
    g_autofree double *numbers = kiln_literal_read(kiln_literal_source(value), error);
    double most = numbers ? 0 : otherwise;
    for (int64_t i = 0; numbers && i < kiln_type_elements(&value->type); i++)
        most = fabs(numbers[i]) <= most ? most : fabs(numbers[i]);
    return most;
}

/* What is multiplied by the factor before the rows are must not overflow where the results would
 * not. Of scales and biases that are no literals half the range is expected, on the scale of
 * exponents. */
static bool
products_fit(const KilnNode *norm, const KilnValue *c, GError **error)
{
    const KilnValue *bias = kiln_node_operand(norm, 2);
    double limit = kiln_float_format(c->type.dtype)->largest, most = largest(c, INFINITY, error);
    return most * largest(norm->operands[1].value, sqrt(limit), error) <= limit &&
           (!bias || most * largest(bias, sqrt(limit), error) <= limit);
}

static bool
stays_normal(const KilnNode *norm, const KilnValue *c, GError **error)
{
    double most = largest(c, 1, error), scale = largest(norm->operands[1].value, 1, error);
    return most * scale == 0 || most * scale >= kiln_float_format(c->type.dtype)->smallest;
}

/* The numbers of @value for each of @n elements; NULL without an error where they are not known. */
static double *
spread(const KilnValue *value, int64_t n, GError **error)
{
    g_autofree double *numbers = kiln_literal_read(kiln_literal_source(value), error);
    int64_t own = numbers ? kiln_type_elements(&value->type) : 0;
    if (own == n)
        return g_steal_pointer(&numbers);
    double *all = own == 1 ? kiln_alloc((size_t)n + 1, sizeof *all, error) : NULL;
    for (int64_t i = 0; all && i < n; i++)
        all[i] = numbers[0];
    return all;
}

/* A normalized value is around 1: the products in front of the bias are as large as the scale. */
static bool
keeps_precision(const KilnNode *norm, const KilnValue *c, GError **error)
{
    const KilnValue *bias = norm->operands[2].value;
    int64_t n = kiln_type_elements(&bias->type);
    if (n < 0)
        return false;
    g_autofree double *offsets = spread(bias, n, error);
    g_autofree double *terms = *error ? NULL : spread(c, n, error);
    g_autofree double *scale = *error ? NULL : spread(norm->operands[1].value, n, error);
    bool unknown = !scale;
    if (*error || (unknown && !(scale = kiln_alloc((size_t)n + 1, sizeof *scale, error))))
        return false;
    for (int64_t i = 0; unknown && i < n; i++)
        scale[i] = 1;
    return kiln_sum_keeps_precision(offsets, terms, scale, n, c->type.dtype);
}

static bool
finish(KilnMatch *match, KilnValue *scale, KilnValue *bias)
{
    const KilnNode *norm = kiln_match_node(match, "norm");
    KilnValue *operands[] = { norm->operands[0].value, scale, bias };
    KilnValue *result =
        kiln_match_build(match, KILN_OP_layer_normalization, norm->attrs, operands, bias ? 3 : 2);
    return kiln_match_replace(match, result);
}

static bool
fold_factor(KilnMatch *match)
{
    const KilnNode *norm = kiln_match_node(match, "norm");
    GUARD(one_result, norm->n_results == 1);
    KilnValue *c = parameter_of(match), *bias = kiln_node_operand(norm, 2);
    GUARD(of_the_run, c != NULL);
    GUARD(wide, !kiln_dtype_is_half(norm->results[0].type.dtype));
    GUARD(finite, products_fit(norm, kiln_match_value(match, "c"), match->error));
    GUARD(normal, stays_normal(norm, kiln_match_value(match, "c"), match->error));
    KilnValue *scale = kiln_match_build(match, KILN_OP_mul, NULL,
                                        (KilnValue *[]){ norm->operands[1].value, c }, 2);
    if (scale && bias) {
        bias = kiln_match_build(match, KILN_OP_mul, NULL, (KilnValue *[]){ bias, c }, 2);
        scale = bias ? scale : NULL;
    }
    return scale && finish(match, scale, bias);
}

static bool
fold_term(KilnMatch *match)
{
    const KilnNode *norm = kiln_match_node(match, "norm");
    GUARD(one_result, norm->n_results == 1);
    GUARD(literal, kiln_affine_constant(kiln_match_value(match, "c")));
    KilnValue *c = parameter_of(match), *bias = kiln_node_operand(norm, 2);
    GUARD(of_the_run, c != NULL);
    GUARD(wide, !bias || !kiln_dtype_is_half(norm->results[0].type.dtype));
    GUARD(precise, !kiln_node_operand(norm, 2) ||
                       keeps_precision(norm, kiln_match_value(match, "c"), match->error));
    if (bias)
        c = kiln_match_build(match, KILN_OP_add, NULL, (KilnValue *[]){ bias, c }, 2);
    return c && finish(match, norm->operands[1].value, c);
}

static const KilnRule rules[] = {
    RULE("layer-norm-times", U, "(mul~ (layer_normalization!#norm ?x ?scale ...):float ?c)",
         fold_factor),
    RULE("layer-norm-plus", U, "(add~ (layer_normalization!#norm ?x ?scale ...):float ?c)",
         fold_term),
};

RULE_PASS(fold_layernorm_arithmetic, FORWARD);
