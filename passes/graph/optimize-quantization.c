/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-quantization: conversions between reals and stored integers that meet each other.
 *
 *        x : a             x : a           x : f32              x : a          x : a
 *        |                 |               |                    |              |
 *    dequantize        dequantize       quantize : b         rescale : b    rescale : b
 *        |                 |               |                    |              |
 *    quantize : a      quantize : b     dequantize           rescale : c    dequantize
 *        |                 |               |                    |              |
 *        =>                =>              =>                   =>             =>
 *        x              rescale(x) : b     x  (quant-lossy)  rescale(x) : c dequantize(x)
 *
 * and a rescale to the type that its operand has goes; quantize and dequantize of a splat are
 * splats.
 *
 * requires nothing, preserves nothing; class QT, and E where nothing is rounded at all. What rounds
 * or saturates on the way is part of the meaning. A rescale in the middle goes where every stored
 * value of x ends at the same number without it; all are tried. The rest leaves a step out (class
 * QS, and L without a bound) and needs the flag quant-lossy: a rescale between two where no stored
 * value ends more than one step elsewhere; a rescale before a dequantize where nothing saturates in
 * it, it rounds by a step of x at most and no quantize follows; a quantize before a dequantize.
 * Under the flag quant-saturation any rescale goes before a rescale or a dequantize (class L), as
 * in Glow. */
#include "passes/rule.h"

#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"

static bool
drop_round_trip(KilnMatch *match)
{
    GUARD(survives_f32, kiln_quant_survives_f32(&kiln_match_value(match, "x")->type));
    return kiln_match_replace_by_x(match);
}

static bool
drop_rescale(KilnMatch *match)
{
    GUARD(regular, kiln_quant_is_regular(&kiln_match_value(match, "x")->type));
    return kiln_match_replace_by_x(match);
}

/* One node of @op takes x to the type of the root's result. */
static bool
convert_directly(KilnMatch *match, KilnOp op)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &match->root->results[0].type;
    return kiln_match_replace(match, kiln_match_build_typed(match, op, NULL, &x, 1, type));
}

static bool
rescale_instead(KilnMatch *match)
{
    const KilnType *from = &kiln_match_value(match, "x")->type;
    const KilnType *to = &match->root->results[0].type;
    GUARD(survives_f32, kiln_quant_survives_f32(from));
    GUARD(regular, kiln_quant_is_regular(to));
    return convert_directly(match, KILN_OP_rescale_quantized);
}

static bool
rescale_once(KilnMatch *match)
{
    const KilnType *first = &kiln_match_value(match, "x")->type;
    const KilnType *middle = &kiln_match_node(match, "middle")->results[0].type;
    const KilnType *last = &match->root->results[0].type;
    GUARD(saturates_alike, kiln_quant_detour_is_within(first, middle, last, 1));
    return convert_directly(match, KILN_OP_rescale_quantized);
}

static bool
skip_exact_middle(KilnMatch *match)
{
    const KilnType *first = &kiln_match_value(match, "x")->type;
    const KilnType *middle = &kiln_match_node(match, "middle")->results[0].type;
    const KilnType *last = &match->root->results[0].type;
    GUARD(detour_exact, kiln_quant_detour_is_within(first, middle, last, 0));
    return convert_directly(match, KILN_OP_rescale_quantized);
}

static bool
dequantize_exact(KilnMatch *match)
{
    const KilnType *from = &kiln_match_value(match, "x")->type;
    const KilnType *middle = &kiln_match_node(match, "middle")->results[0].type;
    GUARD(rescale_exact, kiln_quant_rescale_is_exact(from, middle));
    return convert_directly(match, KILN_OP_dequantize_linear);
}

/* A quantize behind it makes a rescale of both, of which rescale_once() knows what may be left out.
 */
static bool
is_quantized_again(const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->op == KILN_OP_quantize_linear)
            return true;
    }
    return false;
}

static bool
dequantize_directly(KilnMatch *match)
{
    const KilnType *from = &kiln_match_value(match, "x")->type;
    const KilnType *middle = &kiln_match_node(match, "middle")->results[0].type;
    GUARD(range_included, kiln_quant_holds(middle, from));
    GUARD(one_step, kiln_quant_steps_fit(middle, from));
    GUARD(stays_real, !is_quantized_again(&match->root->results[0]));
    return convert_directly(match, KILN_OP_dequantize_linear);
}

/* Glow's forms: what the middle clamps is no reason to keep it. */
static bool
rescale_past_clamp(KilnMatch *match)
{
    return convert_directly(match, KILN_OP_rescale_quantized);
}

static bool
dequantize_past_clamp(KilnMatch *match)
{
    return convert_directly(match, KILN_OP_dequantize_linear);
}

static bool
fold_splat(KilnMatch *match)
{
    KilnNode *root = match->root;
    const KilnValue *splat = kiln_match_value(match, "splat");
    const KilnType *type = &root->results[0].type;
    GUARD(splat, kiln_quant_converts_splat(splat, type));
    KilnTensor *tensor = kiln_quant_convert(splat, type, match->error);
    if (!tensor)
        return false;
    KilnValue *folded = kiln_build_constant_as(match->root->function, root,
                                               kiln_value_constant(splat)->name, tensor, type);
    return kiln_match_replace(match, folded);
}

static const KilnRule rules[] = {
    RULE("fold-splat", E, "(quantize_linear|dequantize_linear $splat)", fold_splat),
    RULE("rescale-to-same", E, "(rescale_quantized ?x)", drop_rescale),
    RULE("quantize-of-dequantize-same", E, "(quantize_linear (dequantize_linear ?x:quantized):f32)",
         drop_round_trip),
    RULE("quantize-of-dequantize", QT, "(quantize_linear (dequantize_linear ?x:quantized):f32)",
         rescale_instead),
    RULE("rescale-of-exact-rescale", E, "(rescale_quantized (rescale_quantized#middle ?x))",
         skip_exact_middle),
    FLAGGED_RULE("rescale-of-rescale", QS, KILN_FLAG(quant_lossy),
                 "(rescale_quantized (rescale_quantized#middle ?x))", rescale_once),
    RULE("dequantize-of-exact-rescale", E, "(dequantize_linear (rescale_quantized#middle ?x))",
         dequantize_exact),
    FLAGGED_RULE("dequantize-of-rescale", QS, KILN_FLAG(quant_lossy),
                 "(dequantize_linear (rescale_quantized#middle ?x))", dequantize_directly),
    LOSSY_RULE("rescale-of-any-rescale", KILN_FLAG(quant_saturation),
               "(rescale_quantized (rescale_quantized ?x))", rescale_past_clamp),
    LOSSY_RULE("dequantize-of-any-rescale", KILN_FLAG(quant_saturation),
               "(dequantize_linear (rescale_quantized ?x))", dequantize_past_clamp),
    LOSSY_RULE("dequantize-of-quantize", KILN_FLAG(quant_lossy),
               "(dequantize_linear (quantize_linear ?x))", kiln_match_replace_by_x),
};

RULE_PASS(optimize_quantization, FORWARD);
