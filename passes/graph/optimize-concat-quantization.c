/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-concat-quantization: stored integers are joined as they are instead of as reals.
 *
 *     x : a       y : b              x : a      y : b
 *        |           |                  |          |
 *    dequantize  dequantize         rescale : c    |      where a is not c; y : b where b is
 *          \       /          =>          \       /
 *           concat                        concat : c
 *              |
 *          quantize : c
 *
 * requires nothing, preserves nothing; class QT: a rescale is at most one step from what it stands
 * for; class E where no type differs. The concat and what feeds it have no other readers, so that
 * no real is made any more; all types have one scale and zero point for all elements. */
#include "passes/rule.h"

#include "graph/op/concat.h"
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"

/* The quantized value that operand @i of the concat was, or NULL. */
static KilnValue *
dequantized(const KilnNode *concat, uint32_t i)
{
    const KilnValue *operand = concat->operands[i].value;
    const KilnNode *node = operand ? kiln_value_def_of(operand, KILN_OP_dequantize_linear) : NULL;
    bool typed = node && node->function == concat->function && !kiln_node_operand(node, 1);
    return typed && operand->type.dtype == KILN_DTYPE_f32 ? node->operands[0].value : NULL;
}

static KilnValue *
requantized(const KilnMatch *match, KilnValue *value, const KilnType *to)
{
    KilnType type = kiln_quant_stored_as(&value->type, to);
    return kiln_match_build_typed(match, KILN_OP_rescale_quantized, NULL, &value, 1, &type);
}

static bool
join_integers(KilnMatch *match)
{
    const KilnNode *concat = kiln_match_node(match, "concat");
    const KilnType *to = &match->root->results[0].type;
    GUARD(uniform, kiln_quant_is_uniform(to));
    g_autofree KilnValue **parts = g_new(KilnValue *, concat->n_operands);
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        KilnValue *part = dequantized(concat, i);
        if (!part)
            return false;
        GUARD(single_use, kiln_value_single_use(concat->operands[i].value));
        GUARD(parts_uniform, kiln_quant_is_uniform(&part->type));
        GUARD(survives_f32, kiln_quant_survives_f32(&part->type));
        parts[i] = kiln_quant_same(&part->type, to) ? part : requantized(match, part, to);
        if (!parts[i])
            return false;
    }
    return kiln_match_replace(match, kiln_match_build_typed(match, KILN_OP_concat, concat->attrs,
                                                            parts, concat->n_operands, to));
}

static const KilnRule rules[] = {
    RULE("concat-of-dequantized", QT, "(quantize_linear (concat!#concat ? ...))", join_integers),
};

RULE_PASS(optimize_concat_quantization, FORWARD);
