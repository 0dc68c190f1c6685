/* SPDX-License-Identifier: Apache-2.0 */
/* quantize-swish: an activation between dequantize and quantize takes stored integers itself.
 *
 *     x : a                   x : a
 *       |                       |
 *   dequantize      =>        swish : b
 *       |
 *     swish                 swish, hard_swish, sigmoid, hard_sigmoid, tanh, gelu, mish, elu, celu,
 *       |                   selu, softplus, softsign, leaky_relu, relu
 *   quantize : b
 *
 * A byte has 256 values, of which a table can be made then.
 *
 * requires nothing, preserves nothing; class QT: the function is evaluated on the same reals, with
 * roundings far below a step of 16 bits; all of these functions are continuous, so that a rounding
 * moves a result by no more than itself. (Parameters stay as they are; Glow's counterpart chooses
 * others for swish.) The function has no other reader; the dequantize may have. */
#include "passes/rule.h"

#include "passes/query/quant_range.h"

static bool
quantize_function(KilnMatch *match)
{
    const KilnNode *function = kiln_match_node(match, "function");
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &match->root->results[0].type;
    GUARD(regular, kiln_quant_is_regular(type));
    GUARD(survives_f32, kiln_quant_survives_f32(&x->type));
    return kiln_match_replace(
        match, kiln_match_build_typed(match, function->op, function->attrs, &x, 1, type));
}

static const KilnRule rules[] = {
    RULE("quantize-activation", QT,
         "(quantize_linear "
         "(swish|hard_swish|sigmoid|hard_sigmoid|tanh|gelu|mish|elu|celu|selu|softplus|softsign|"
         "leaky_relu|relu!#function (dequantize_linear ?x:quantized):f32))",
         quantize_function),
};

RULE_PASS(quantize_swish, FORWARD);
