/* SPDX-License-Identifier: Apache-2.0 */
/* combine-rescale-down: an op that takes operands of any quantization reads what a rescale read.
 *
 *      a : p
 *        |                  a : p   b : r
 *    rescale : q  b : r       \     /
 *           \     /      =>    node : s
 *           node : s
 *
 * for add, sub, mul, div, min, max, relu; conv, matmul and gemm.
 *
 * requires nothing, preserves nothing. Class QT for min, max and relu where q is s: they choose
 * among numbers, and rounding keeps their order. All else leaves a rounding out that the model
 * states, and runs under the flag quant-lossy. Class QS: the rescale's rounding is dropped, its
 * saturation must not have happened: the range of q includes that of p. All rescales of a node are
 * dropped together, and only where their roundings together move its result by less than a step:
 * half a step of q for a sum or a maximum, times the largest other factor for a product, over the
 * smallest divisor of a literal for a quotient. The rule for products (class L) asks nothing of
 * the roundings, which sums of products and small divisors multiply. Under the flag
 * quant-saturation arithmetic asks for nothing at all, as in Glow. Others may read the rescale and
 * keep it. A bias is in steps of the products and keeps the factors as they are. */
#include "passes/rule.h"

#include "graph/base/number.h"
#include "graph/op/multiplicative.h"
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"

#include <math.h>

static KilnNode *
any_rescale(const KilnValue *operand)
{
    return operand ? kiln_value_def_of(operand, KILN_OP_rescale_quantized) : NULL;
}

/* A rescale that may go: nothing saturates in it. */
static KilnNode *
removable_rescale(const KilnValue *operand)
{
    KilnNode *rescale = any_rescale(operand);
    return rescale && kiln_quant_holds(&operand->type, &rescale->operands[0].value->type) ? rescale
                                                                                          : NULL;
}

/* --- how far roundings move the result --- */

/* The largest magnitude of @operand, with and without its rescale. */
static double
largest(const KilnValue *operand)
{
    double low, high;
    kiln_quant_real_range(&operand->type, &low, &high);
    return MAX(fabs(low), fabs(high));
}

static double
rounding_of(const KilnValue *operand)
{
    double coarsest, finest;
    kiln_quant_steps(&operand->type, &coarsest, &finest);
    return removable_rescale(operand) ? coarsest / 2 : 0;
}

/* The smallest magnitude of a divisor; 0 where that is not known. */
static double
smallest(const KilnValue *divisor)
{
    const KilnConstant *constant = kiln_value_constant(divisor);
    uint8_t element[8];
    if (!constant || !kiln_quant_is_uniform(&divisor->type) ||
        !kiln_tensor_is_splat(constant->tensor, 65536, element))
        return 0;
    KilnGrid grid = kiln_quant_grid(&divisor->type, 0);
    return fabs(kiln_grid_real(&grid, kiln_element_as_i64(grid.dtype, element, 0)));
}

static double
moved_by(const KilnNode *node)
{
    const KilnValue *a = node->operands[0].value;
    const KilnValue *b = node->n_operands > 1 ? node->operands[1].value : NULL;
    if (node->op == KILN_OP_mul)
        return rounding_of(a) * largest(b) + rounding_of(b) * largest(a) +
               rounding_of(a) * rounding_of(b);
    if (node->op == KILN_OP_div)
        return rounding_of(b) > 0 || smallest(b) == 0 ? INFINITY : rounding_of(a) / smallest(b);
    double sum = 0;
    for (uint32_t i = 0; i < node->n_operands; i++)
        sum += rounding_of(node->operands[i].value);
    return sum;
}

/* --- the rules --- */

static bool
has_rescale(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (any_rescale(node->operands[i].value))
            return true;
    }
    return false;
}

static bool
all_regular(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!node->operands[i].value || !kiln_quant_is_regular(&node->operands[i].value->type))
            return false;
    }
    return kiln_quant_is_regular(&node->results[0].type);
}

/* The root without those rescales of its operands that @find finds. */
static bool
replace_without(KilnMatch *match, KilnNode *(*find)(const KilnValue *operand))
{
    const KilnNode *root = match->root;
    g_autofree KilnValue **operands = g_new(KilnValue *, root->n_operands);
    for (uint32_t i = 0; i < root->n_operands; i++) {
        const KilnNode *rescale = find(root->operands[i].value);
        operands[i] = rescale ? rescale->operands[0].value : root->operands[i].value;
    }
    return kiln_match_replace(match,
                              kiln_match_build_typed(match, root->op, root->attrs, operands,
                                                     root->n_operands, &root->results[0].type));
}

static bool
read_through(KilnMatch *match)
{
    const KilnNode *root = match->root;
    bool saturates = true;
    for (uint32_t i = 0; i < root->n_operands; i++)
        saturates &= !removable_rescale(root->operands[i].value);
    GUARD(range_included, !saturates);
    return replace_without(match, removable_rescale);
}

static bool
into_arithmetic(KilnMatch *match)
{
    const KilnNode *root = match->root;
    double coarsest, finest;
    if (!has_rescale(root))
        return false;
    GUARD(regular, all_regular(root));
    kiln_quant_steps(&root->results[0].type, &coarsest, &finest);
    GUARD(within_a_step, moved_by(root) <= 0.99 * finest);
    return read_through(match);
}

/* Rounding keeps order: the largest of rounded numbers is the rounded largest. */
static bool
into_choice(KilnMatch *match)
{
    const KilnNode *root = match->root;
    for (uint32_t i = 0; i < root->n_operands; i++) {
        const KilnNode *rescale = removable_rescale(root->operands[i].value);
        GUARD(rounds_to_result,
              !rescale || kiln_quant_same(&rescale->results[0].type, &root->results[0].type));
    }
    return into_arithmetic(match);
}

static bool
into_product(KilnMatch *match)
{
    const KilnNode *root = match->root;
    if (!has_rescale(root))
        return false;
    for (uint32_t i = 0; i < root->n_operands; i++) {
        const KilnNode *rescale = removable_rescale(root->operands[i].value);
        const KilnType *type = rescale ? &rescale->operands[0].value->type : NULL;
        GUARD(uniform, !type || kiln_quant_is_uniform(type));
        GUARD(same_storage, !type || type->dtype == rescale->results[0].type.dtype);
    }
    GUARD(no_bias, root->n_operands == 2 || !root->operands[2].value);
    return read_through(match);
}

/* Glow's form: every rescale goes, also one that clamps or rounds by more than a step. */
static bool
past_clamps(KilnMatch *match)
{
    const KilnNode *root = match->root;
    if (!has_rescale(root))
        return false;
    GUARD(regular, all_regular(root));
    return replace_without(match, any_rescale);
}

static const KilnRule rules[] = {
    RULE("rescale-into-choice", QT, "(min|max|relu ?:quantized ...)", into_choice),
    FLAGGED_RULE("rescale-into-arithmetic", QS, KILN_FLAG(quant_lossy),
                 "(add|sub|mul|div|min|max|relu ?:quantized ...)", into_arithmetic),
    LOSSY_RULE("rescale-into-product", KILN_FLAG(quant_lossy),
               "(mul|div|conv|matmul|gemm ?:quantized ...)", into_product),
    LOSSY_RULE("any-rescale-into-arithmetic", KILN_FLAG(quant_saturation),
               "(add|sub|mul|div|min|max|relu ?:quantized ...)", past_clamps),
};

RULE_PASS(combine_rescale_down, FORWARD);
