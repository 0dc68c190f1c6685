/* SPDX-License-Identifier: Apache-2.0 */
/* lower-quantized: operators on quantized types that the target has no kernel of its own for are
 * computed on floats.
 *
 *      a       b                a         b
 *       \     /                 |         |
 *        conv : i8 q   =>   dequantize  dequantize
 *          |                     \       /
 *                                  conv
 *                                   |
 *                               quantize : i8 q
 *
 * and rescale_quantized becomes a dequantize and a quantize. Literals are dequantized while
 * compiling.
 *
 * requires nothing, preserves nothing; class QT: f32 rounds where the reference computes in
 * integers or f64, then both round to the same grid. The target's fallback does not count, as for
 * `lower`: only its own kernels are faster. Without a target nothing is lowered. Stands after what
 * merges conversions (merge-qdq, optimize-quantization), which would take this back, and after
 * unary-to-lut. */
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

/* @value as f32 before the root. */
static KilnValue *
dequantized(const KilnMatch *match, KilnValue *value)
{
    KilnFunction *function = match->root->function;
    KilnType type = value->type;
    type.dtype = KILN_DTYPE_f32;
    type.quant = NULL;
    g_autoptr(GError) why = NULL;
    KilnTensor *tensor = kiln_value_constant(value) ? kiln_quant_convert(value, &type, &why) : NULL;
    if (tensor)
        return kiln_build_constant(function, match->root, value->name, tensor);
    if (why) {
        g_propagate_error(match->error, g_steal_pointer(&why));
        return NULL;
    }
    return kiln_match_build_typed(match, KILN_OP_dequantize_linear, NULL, &value, 1, &type);
}

/* The operands in f32; one that stands twice becomes one value. */
static KilnValue **
float_operands(const KilnMatch *match)
{
    const KilnNode *node = match->root;
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        operands[i] = value;
        if (!value || !value->type.quant)
            continue;
        operands[i] = NULL;
        for (uint32_t k = 0; k < i && !operands[i]; k++)
            operands[i] = node->operands[k].value == value ? operands[k] : NULL;
        if (!operands[i] && !(operands[i] = dequantized(match, value)))
            return NULL;
    }
    return g_steal_pointer(&operands);
}

static bool
finish(KilnMatch *match, KilnValue *reals)
{
    return kiln_match_replace(match,
                              kiln_match_build_typed(match, KILN_OP_quantize_linear, NULL, &reals,
                                                     1, &match->root->results[0].type));
}

static bool
lower_operator(KilnMatch *match)
{
    const KilnNode *node = match->root;
    if (!kiln_pass_target(match->context) || !node->results[0].type.quant || node->n_results != 1)
        return false;
    GUARD(target_lacks, !kiln_pass_target_has(match->context, node));
    g_autofree KilnValue **operands = float_operands(match);
    KilnValue *reals =
        operands ? kiln_match_build(match, node->op, node->attrs, operands, node->n_operands)
                 : NULL;
    if (!reals)
        return false;
    GUARD(target_has, kiln_pass_target_has(match->context, reals->def));
    return finish(match, reals);
}

static bool
lower_rescale(KilnMatch *match)
{
    if (!kiln_pass_target(match->context))
        return false;
    GUARD(target_lacks, !kiln_pass_target_has(match->context, match->root));
    KilnValue *reals = dequantized(match, kiln_match_value(match, "x"));
    if (!reals)
        return false;
    GUARD(target_has,
          reals->def->op == KILN_OP_const || kiln_pass_target_has(match->context, reals->def));
    return finish(match, reals);
}

static const KilnRule rules[] = {
    RULE("lower-quantized-operator", QT, "(@QUANTIZED ...)", lower_operator),
    RULE("lower-rescale", QT, "(rescale_quantized ?x)", lower_rescale),
};

RULE_PASS(lower_quantized, FORWARD);
