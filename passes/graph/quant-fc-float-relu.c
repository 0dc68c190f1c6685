/* SPDX-License-Identifier: Apache-2.0 */
/* quant-fc-float-relu: a relu of reals that come from a quantized product is one of stored
 * integers.
 *
 *      fc : a            fc : a            fc : a    fc : b          fc : a     fc : b
 *        |                 |                 |         |                |          |
 *    dequantize   =>    relu : a        dequantize dequantize   =>  relu : a   relu : b
 *        |                 |                  \      /                  |          |
 *      relu           dequantize               concat             dequantize  dequantize
 *                                                |                      \      /
 *                                              relu                      concat
 *
 * for gemm, matmul and conv, whose type the relu keeps: it may be fused there, and moves a quarter
 * of the bytes.
 *
 * requires nothing, preserves nothing; class E: 0 is a point of every grid, so that max(x, 0) is
 * one, and what is dequantized is the same number. (Glow narrows the range to [0, max] on the way;
 * the product has rounded already, so that nothing is gained.) Neither the products nor what is
 * made of them has another reader. */
#include "passes/rule.h"

#include "graph/op/activation.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"

/* The dequantized relu of what @dequantize reads. */
static KilnValue *
relu_of_integers(KilnMatch *match, const KilnNode *dequantize)
{
    KilnValue *product = dequantize->operands[0].value;
    KilnValue *relu =
        kiln_match_build_typed(match, KILN_OP_relu, NULL, &product, 1, &product->type);
    return relu ? kiln_match_build_typed(match, KILN_OP_dequantize_linear, NULL, &relu, 1,
                                         &dequantize->results[0].type)
                : NULL;
}

static bool
relu_one(KilnMatch *match)
{
    const KilnNode *dequantize = kiln_match_node(match, "dequantize");
    GUARD(regular, kiln_quant_is_regular(&dequantize->operands[0].value->type));
    return kiln_match_replace(match, relu_of_integers(match, dequantize));
}

/* The dequantize of a quantized product that is operand @i of the concat, or NULL. */
static const KilnNode *
dequantized_product(const KilnNode *concat, uint32_t i)
{
    const KilnValue *part = concat->operands[i].value;
    const KilnNode *dequantize = part ? kiln_value_def_of(part, KILN_OP_dequantize_linear) : NULL;
    if (!dequantize || dequantize->function != concat->function || kiln_node_operand(dequantize, 1))
        return NULL;
    const KilnValue *product = dequantize->operands[0].value;
    bool known = kiln_value_def_of(product, KILN_OP_gemm) ||
                 kiln_value_def_of(product, KILN_OP_matmul) ||
                 kiln_value_def_of(product, KILN_OP_conv);
    return known && product->def->function == concat->function ? dequantize : NULL;
}

static bool
relu_each(KilnMatch *match)
{
    const KilnNode *concat = kiln_match_node(match, "concat");
    g_autofree KilnValue **parts = g_new(KilnValue *, concat->n_operands);
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        const KilnNode *dequantize = dequantized_product(concat, i);
        if (!dequantize)
            return false;
        GUARD(single_use, kiln_value_single_use(concat->operands[i].value) &&
                              kiln_value_single_use(dequantize->operands[0].value));
        GUARD(regular, kiln_quant_is_regular(&dequantize->operands[0].value->type));
        parts[i] = relu_of_integers(match, dequantize);
        if (!parts[i])
            return false;
    }
    return kiln_match_replace(match, kiln_match_build_typed(match, KILN_OP_concat, concat->attrs,
                                                            parts, concat->n_operands,
                                                            &match->root->results[0].type));
}

static const KilnRule rules[] = {
    RULE("relu-of-product", E,
         "(relu (dequantize_linear!#dequantize (gemm|matmul|conv! ...):quantized))", relu_one),
    RULE("relu-of-products", E, "(relu (concat!#concat ? ...))", relu_each),
};

RULE_PASS(quant_fc_float_relu, FORWARD);
