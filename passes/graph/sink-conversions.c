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

#include "graph/op/activation.h"
#include "graph/op/concat.h"
#include "passes/query/quant_range.h"

#define OPTIONS(OPTION, CHOICE)                                                                    \
    OPTION(BOOL, narrowing, false)                                                                 \
    OPTION(BOOL, tanh, false)
PASS_OPTIONS(sink_conversions, OPTIONS);

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
sink(KilnMatch *match)
{
    const Options *options = kiln_pass_options(match->context);
    const KilnNode *concat = match->root, *first = kiln_match_node(match, "first");
    const KilnType *from = &first->operands[0].value->type, *to = &concat->results[0].type;
    const KilnOpInfo *info = kiln_op_info(first->op);
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
        GUARD(same_attrs, kiln_attrs_equal(info->attrs, info->n_attrs, part->attrs, first->attrs));
        GUARD(same_target, kiln_quant_same(&part->results[0].type, to));
        parts[i] = part->operands[0].value;
    }
    KilnType joined_type = kiln_quant_stored_as(to, from);
    KilnValue *joined = kiln_match_build_typed(match, KILN_OP_concat, concat->attrs, parts,
                                               concat->n_operands, &joined_type);
    KilnValue *converted =
        joined ? kiln_match_build_typed(match, first->op, first->attrs, &joined, 1, to) : NULL;
    return kiln_match_replace(match, converted);
}

static const KilnRule rules[] = {
    RULE("sink-conversion", E,
         "(concat (dequantize_linear|quantize_linear|cast|tanh!#first ?) ? ...)", sink),
};

RULE_PASS(sink_conversions, FORWARD);
