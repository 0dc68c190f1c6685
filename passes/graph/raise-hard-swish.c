/* SPDX-License-Identifier: Apache-2.0 */
/* raise-hard-swish: the formulas of hard swish become the operator.
 *
 *     x · hard_sigmoid(x) {alpha=1/6, beta=1/2}      =>  hard_swish(x)
 *     x · clip(x + 3, 0, 6) / 6                      =>  hard_swish(x)
 *
 * Factors of the second may stand in any order and association, divided by 6 or times a sixth.
 *
 * requires nothing, preserves nothing; class U: the operator rounds once. Nothing else may read
 * what stands inside. A hard sigmoid of f64 stays: its attribute is the sixth of f32. */
#include "passes/rule.h"

#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "passes/query/factors.h"

static bool
finish(KilnMatch *match, KilnValue *x)
{
    return kiln_match_replace_by_op(match, KILN_OP_hard_swish, &x, 1);
}

static bool
raise_gate(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnAttrs_hard_sigmoid *attrs = kiln_attrs(kiln_match_node(match, "gate"), hard_sigmoid);
    GUARD(slope, kiln_numbers_agree((double)attrs->alpha, 1.0 / 6, KILN_DTYPE_f32));
    GUARD(offset, attrs->beta == 0.5f);
    GUARD(sixth_fits, x->type.dtype != KILN_DTYPE_f64);
    return finish(match, x);
}

/* x · scale · clip(x + shift, low, high) */
typedef struct {
    KilnValue *x;
    const KilnNode *clip;
    const KilnValue *shift;
    double scale;
    bool single_reader;
} Clipped;

static bool
read_clipped(const KilnNode *root, Clipped *out)
{
    KilnProduct product;
    if (!kiln_product_of(root->function, (KilnValue *)&root->results[0], &product) ||
        product.n != 2)
        return false;
    out->scale = product.scale;
    for (uint32_t i = 0; i < 2; i++) {
        const KilnNode *clip = kiln_value_def_of(product.factors[i], KILN_OP_clip);
        const KilnNode *sum = clip ? kiln_value_def_of(clip->operands[0].value, KILN_OP_add) : NULL;
        out->x = product.factors[1 - i];
        out->shift = sum ? kiln_other_operand(sum, out->x) : NULL;
        out->clip = clip;
        out->single_reader = sum && kiln_value_single_use(&clip->results[0]) &&
                             kiln_value_single_use(&sum->results[0]);
        if (out->shift && clip->function == root->function && sum->function == root->function)
            return true;
    }
    return false;
}

static bool
raise_clip(KilnMatch *match)
{
    Clipped clipped;
    if (!read_clipped(match->root, &clipped))
        return false;
    const KilnNode *clip = clipped.clip;
    GUARD(sixth, kiln_numbers_agree(clipped.scale, 1.0 / 6, clipped.x->type.dtype));
    GUARD(three, kiln_literal_is(clipped.shift, 3));
    GUARD(bounds, kiln_literal_is(kiln_node_operand(clip, 1), 0) &&
                      kiln_literal_is(kiln_node_operand(clip, 2), 6));
    GUARD(single_reader, clipped.single_reader);
    return finish(match, clipped.x);
}

static const KilnRule rules[] = {
    RULE("hard-swish-gate", U, "(mul~ ?x:float (hard_sigmoid!#gate ?x))", raise_gate),
    RULE("hard-swish-clip", U, "(mul|div~ ? (clip|mul|div ...))", raise_clip),
};

RULE_PASS(raise_hard_swish, FORWARD);
