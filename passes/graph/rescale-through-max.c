/* SPDX-License-Identifier: Apache-2.0 */
/* rescale-through-max: a rescale of a maximum becomes one of each operand.
 *
 *     x : a   y : a          x : a       y : a
 *        \   /                 |           |
 *         max : a    =>    rescale : b  rescale : b        min likewise
 *          |                    \         /
 *      rescale : b                max : b
 *
 * requires nothing, preserves nothing; class E: to round and to saturate is monotone, so that the
 * larger of two numbers stays the larger. All types must have one quantization for all elements,
 * and operands and result the same: only then does the maximum choose among stored numbers. It must
 * have no other reader.
 *
 * Operands that are rescaled twice already wait until those are one (`optimize-quantization`), so
 * that rescales do not pile up. Alone this is more work; it pays where the new rescales meet
 * others, or literals. `when: always` is what the Glow document describes; `pays` asks that every
 * new rescale meets something that may take it up: a literal, or the one use of a rescale, a
 * quantize or a maximum. */
#include "passes/rule.h"

#include "graph/op/bounds.h"
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"

#include <string.h>

#define OPTIONS(OPTION, CHOICE) CHOICE(when, "always", "always|pays")
PASS_OPTIONS(rescale_through_max, OPTIONS);

enum {
    NEAR = 8
};

static bool
is_rescaled_twice(const KilnValue *value)
{
    const KilnNode *rescale = kiln_value_def_of(value, KILN_OP_rescale_quantized);
    return rescale && kiln_value_def_of(rescale->operands[0].value, KILN_OP_rescale_quantized);
}

/* What has a rescale for a reader may disappear into it. */
static bool
takes_up_rescale(const KilnValue *value)
{
    if (kiln_value_constant(value))
        return true;
    KilnOp op = value->def ? value->def->op : KILN_OP_return;
    return kiln_value_single_use(value) &&
           (op == KILN_OP_rescale_quantized || op == KILN_OP_quantize_linear || op == KILN_OP_max ||
            op == KILN_OP_min);
}

static bool
pays(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!takes_up_rescale(node->operands[i].value))
            return false;
    }
    return true;
}

/* One rescale per value that is an operand more than once within a few operands. */
static bool
rescale_operands(const KilnMatch *match, const KilnNode *node, const KilnQuant *quant,
                 KilnDType dtype, KilnValue **rescaled)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *operand = node->operands[i].value;
        for (uint32_t j = i > NEAR ? i - NEAR : 0; j < i && !rescaled[i]; j++)
            rescaled[i] = node->operands[j].value == operand ? rescaled[j] : NULL;
        if (rescaled[i])
            continue;
        KilnType type = operand->type;
        type.quant = quant;
        type.dtype = dtype;
        rescaled[i] =
            kiln_match_build_typed(match, KILN_OP_rescale_quantized, NULL, &operand, 1, &type);
        if (!rescaled[i])
            return false;
    }
    return true;
}

static bool
distribute(KilnMatch *match)
{
    const Options *options = kiln_pass_options(match->context);
    KilnNode *node = kiln_match_node(match, "node");
    const KilnType *from = &node->results[0].type;
    const KilnType *to = &match->root->results[0].type;
    GUARD(uniform, kiln_quant_is_uniform(from) && kiln_quant_is_uniform(to));
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *operand = node->operands[i].value;
        GUARD(same_quantization, kiln_quant_same(&operand->type, from));
        GUARD(merged_first, !is_rescaled_twice(operand));
    }
    GUARD(pays, strcmp(options->when, "always") == 0 || pays(node));
    g_autofree KilnValue **rescaled = g_new0(KilnValue *, node->n_operands);
    if (!rescale_operands(match, node, to->quant, to->dtype, rescaled))
        return false;
    return kiln_match_replace(
        match, kiln_match_build_typed(match, node->op, NULL, rescaled, node->n_operands, to));
}

static const KilnRule rules[] = {
    RULE("rescale-through-max", E, "(rescale_quantized (max|min!#node ? ...))", distribute),
};

RULE_PASS(rescale_through_max, FORWARD);
