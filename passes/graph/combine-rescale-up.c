/* SPDX-License-Identifier: Apache-2.0 */
/* combine-rescale-up: what feeds a rescale rounds to the rescale's type itself.
 *
 *      a : p   b : q            a : p   b : q          x : f32            const w : p
 *         \   /                    \   /                |                   |
 *        node : r       =>        node : s           quantize : r        rescale : s
 *          |                        |                   |                   |
 *       rescale : s                                  rescale : s            =>
 *          |                                            |                const w' : s
 *                                                       =>
 *                                                    quantize(x) : s
 *
 * for add, sub, mul, div, min, max, relu, conv, matmul, gemm and quantize_linear, which have
 * results of any quantization.
 *
 * requires nothing, preserves nothing. The first two leave a rounding out and choose other
 * parameters of a value: class QS, under the flags quant-lossy and quant-param-changes. One
 * rounding in place of two is at most one step of s apart, and what saturates in r must saturate in
 * s, too, or nothing saturates in r, as far as operand ranges tell. A literal is class E and needs
 * no flag: its elements are what the rescale would store. Whatever is replaced has no other reader;
 * but a splat needs no memory and may have.
 */
#include "passes/rule.h"

#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/multiplicative.h"
#include "passes/query/quant_range.h"

typedef struct {
    double low, high;
} Interval;

static Interval
range_of(const KilnType *type)
{
    Interval range;
    kiln_quant_real_range(type, &range.low, &range.high);
    return range;
}

static Interval
product_range(Interval a, Interval b)
{
    double ends[] = { a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high };
    Interval range = { ends[0], ends[0] };
    for (size_t i = 1; i < G_N_ELEMENTS(ends); i++) {
        range.low = MIN(range.low, ends[i]);
        range.high = MAX(range.high, ends[i]);
    }
    return range;
}

/* What the node computes before it rounds, from the ranges of its operands; false where they do not
 * tell. */
static bool
unrounded_range(const KilnNode *node, Interval *range)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *operand = node->operands[i].value;
        if (!operand || !kiln_quant_is_regular(&operand->type))
            return false;
        Interval next = range_of(&operand->type);
        if (i == 0 && node->op != KILN_OP_relu)
            *range = next;
        else if (node->op == KILN_OP_relu)
            *range = (Interval){ MAX(next.low, 0), MAX(next.high, 0) };
        else if (node->op == KILN_OP_add)
            *range = (Interval){ range->low + next.low, range->high + next.high };
        else if (node->op == KILN_OP_sub)
            *range = (Interval){ range->low - next.high, range->high - next.low };
        else if (node->op == KILN_OP_mul)
            *range = product_range(*range, next);
        else if (node->op == KILN_OP_max)
            *range = (Interval){ MAX(range->low, next.low), MAX(range->high, next.high) };
        else if (node->op == KILN_OP_min)
            *range = (Interval){ MIN(range->low, next.low), MIN(range->high, next.high) };
        else
            return false;
    }
    return true;
}

/* Nothing that @middle clamps shows in @last otherwise. */
static bool
is_contained(const KilnNode *node, const KilnType *middle, const KilnType *last)
{
    Interval range = { 0, 0 };
    return kiln_quant_clamps(last, middle) ||
           (unrounded_range(node, &range) && kiln_quant_holds_reals(middle, range.low, range.high));
}

static bool
round_once(KilnMatch *match)
{
    KilnNode *root = match->root, *node = kiln_match_node(match, "node");
    const KilnType *middle = &node->results[0].type, *last = &root->results[0].type;
    GUARD(uniform, kiln_quant_is_uniform(middle) && kiln_quant_is_uniform(last));
    GUARD(saturates_alike, is_contained(node, middle, last));
    GUARD(steps_fit, kiln_quant_steps_fit(middle, last));
    g_autofree KilnValue **operands = g_new(KilnValue *, node->n_operands);
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[i] = node->operands[i].value;
    return kiln_match_replace(match, kiln_match_build_typed(match, node->op, node->attrs, operands,
                                                            node->n_operands, last));
}

static bool
rescale_literal(KilnMatch *match)
{
    KilnNode *root = match->root;
    const KilnValue *literal = kiln_match_value(match, "w");
    const KilnType *type = &root->results[0].type;
    GUARD(single_use, kiln_value_single_use(literal) || kiln_quant_converts_splat(literal, type));
    KilnTensor *tensor = kiln_quant_convert(literal, type, match->error);
    if (!tensor)
        return false;
    KilnValue *rescaled = kiln_build_constant_as(match->root->function, root,
                                                 kiln_value_constant(literal)->name, tensor, type);
    return kiln_match_replace(match, rescaled);
}

/* A step is left out, and another takes its place. */
#define CHANGES (KILN_FLAG(quant_lossy) | KILN_FLAG(quant_param_changes))

static const KilnRule rules[] = {
    RULE("rescale-of-literal", E, "(rescale_quantized $w)", rescale_literal),
    FLAGGED_RULE("rescale-of-quantize", QS, CHANGES,
                 "(rescale_quantized (quantize_linear!#node ?))", round_once),
    FLAGGED_RULE("rescale-of-arithmetic", QS, CHANGES,
                 "(rescale_quantized (add|sub|mul|div|min|max|relu!#node ? ...))", round_once),
    FLAGGED_RULE("rescale-of-product", QS, CHANGES,
                 "(rescale_quantized (conv|matmul|gemm!#node ? ...))", round_once),
};

RULE_PASS(combine_rescale_up, FORWARD);
