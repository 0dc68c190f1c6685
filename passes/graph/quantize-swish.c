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
quantize_function(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    const KilnNode *function = kiln_match_node(match, "function");
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &kiln_match_root(match)->results[0].type;
    GUARD(regular, kiln_quant_is_regular(type));
    GUARD(survives_f32, kiln_quant_survives_f32(&x->type));
    KilnValue *value =
        kiln_match_build_typed(match, function->op, function->attrs, &x, 1, type, error);
    return value && kiln_match_replace(match, context, rule, value);
}

static const KilnRule rules[] = {
    RULE("quantize-activation", QT,
         "(quantize_linear "
         "(swish|hard_swish|sigmoid|hard_sigmoid|tanh|gelu|mish|elu|celu|selu|softplus|softsign|"
         "leaky_relu|relu!#function (dequantize_linear ?x:quantized):f32))",
         quantize_function),
};

const KilnRule *
kiln_pass_rules_quantize_swish(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_quantize_swish(KilnFunction *function, KilnPassContext *context, bool *changed,
                         GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
