/* SPDX-License-Identifier: Apache-2.0 */
/* sink-conversions: one conversion of what is joined instead of one of each part.
 *
 *      x          y                  x   y
 *      |          |                   \ /
 *   convert    convert      =>      concat        convert: dequantize_linear, quantize_linear,
 *        \      /                     |                    cast; tanh
 *         concat                   convert
 *
 * requires nothing, preserves nothing; class E: each element is converted as before. All parts are
 * converted alike, from one type to one type, and none has another reader; quantized types have one
 * scale and zero point for all elements. As a concat moves what it joins, conversions that make
 * elements smaller stay before it unless `narrowing` is set; tanh sinks where `tanh` is. */
#include "passes/rule.h"

#include "passes/query/quant_range.h"

/* The conversion that makes operand @i of the concat, alone for it. */
static const KilnNode *
conversion_of(const KilnNode *concat, uint32_t i, KilnOp op)
{
    const KilnValue *operand = concat->operands[i].value;
    const KilnNode *node = operand ? kiln_value_def_of(operand, op) : NULL;
    return node && node->function == concat->function && !kiln_node_operand(node, 1) ? node : NULL;
}

static bool
is_plain_or_uniform(const KilnType *type)
{
    return !type->quant || kiln_quant_is_uniform(type);
}

static bool
sink(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    const KilnPassOptions_sink_conversions *options = kiln_pass_options(context, sink_conversions);
    const KilnNode *concat = kiln_match_root(match), *first = kiln_match_node(match, "first");
    const KilnType *from = &first->operands[0].value->type, *to = &concat->results[0].type;
    GUARD(asked_for, options->tanh || first->op != KILN_OP_tanh);
    GUARD(not_narrowing, options->narrowing || kiln_dtype_size(from->dtype) <=
                                                   kiln_dtype_size(first->results[0].type.dtype));
    GUARD(uniform, is_plain_or_uniform(from) && is_plain_or_uniform(&first->results[0].type));
    g_autofree KilnValue **parts = g_new(KilnValue *, concat->n_operands);
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        const KilnNode *part = conversion_of(concat, i, first->op);
        if (!part)
            return false;
        GUARD(single_use, kiln_value_single_use(&part->results[0]));
        GUARD(same_source, kiln_quant_same(&part->operands[0].value->type, from));
        GUARD(same_target, kiln_quant_same(&part->results[0].type, to));
        parts[i] = part->operands[0].value;
    }
    KilnType joined_type = kiln_quant_stored_as(to, from);
    KilnValue *joined = kiln_match_build_typed(match, KILN_OP_concat, concat->attrs, parts,
                                               concat->n_operands, &joined_type, error);
    KilnValue *converted =
        joined ? kiln_match_build_typed(match, first->op, first->attrs, &joined, 1, to, error)
               : NULL;
    return converted && kiln_match_replace(match, context, rule, converted);
}

static const KilnRule rules[] = {
    RULE("sink-conversion", E,
         "(concat (dequantize_linear|quantize_linear|cast|tanh!#first ?) ? ...)", sink),
};

const KilnRule *
kiln_pass_rules_sink_conversions(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_sink_conversions(KilnFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
