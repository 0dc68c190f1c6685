/* SPDX-License-Identifier: Apache-2.0 */
/* raise-attention: scaled dot-product attention that was written with products becomes the
 * operator.
 *
 *     q     kᵀ = transpose(k)
 *      \   /
 *      matmul
 *        |    scale                                q   k   v   mask
 *       mul   /                                     \   \ /   /
 *        |  mask                           =>     attention {scale}
 *       add  /                                          |
 *        |
 *     softmax   v
 *         \    /
 *         matmul
 *
 * The scale may be a factor or divisor of the product, of q, of kᵀ or of several; there may be no
 * scale and no mask. kᵀ must be a transpose: where it does more than swap the last two dims, as
 * when it splits heads, what else it does stays a transpose.
 *
 * requires nothing, preserves nothing; class U: scores are not rounded on the way, and scaled where
 * the operator does it. Scores and shares, which the operator never stores as a whole, must have no
 * other readers, and each must be used once: values must not have more batches. Runs after
 * constant-fold, which makes a literal of the scale. */
#include "graph/infer/infer.h"
#include "graph/op/additive.h"
#include "graph/op/matmul.h"
#include "graph/op/softmax.h"
#include "graph/op/transpose.h"
#include "passes/query/factors.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

/* softmax(scale · q · keys + mask), where keys are transposed. */
typedef struct {
    KilnValue *q, *keys, *mask;
    double scale;
    bool single_reader, mask_fits;
} Scores;

/* A side of the product without its factor, which goes into the scale. */
static KilnValue *
unscaled(const KilnFunction *function, KilnValue *side, double *scale)
{
    KilnProduct product;
    if (!kiln_product_of(function, side, &product) || product.n != 1 ||
        !kiln_type_equal(&product.factors[0]->type, &side->type))
        return side;
    *scale *= product.scale;
    return product.factors[0];
}

static bool
read_product(const KilnFunction *function, KilnValue *value, Scores *out)
{
    KilnProduct product;
    if (!kiln_product_of(function, value, &product) || product.n != 1)
        return false;
    const KilnNode *matmul = kiln_value_def_of(product.factors[0], KILN_OP_matmul);
    if (!matmul || matmul->function != function)
        return false;
    out->scale = product.scale;
    out->single_reader = kiln_value_single_use(value) && kiln_value_single_use(&matmul->results[0]);
    out->q = unscaled(function, matmul->operands[0].value, &out->scale);
    out->keys = unscaled(function, matmul->operands[1].value, &out->scale);
    return true;
}

static bool
read_scores(const KilnFunction *function, KilnValue *value, Scores *out)
{
    *out = (Scores){ .mask_fits = true };
    if (read_product(function, value, out))
        return true;
    const KilnNode *sum = kiln_value_def_of(value, KILN_OP_add);
    if (!sum || sum->function != function)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        KilnValue *product = sum->operands[i].value;
        if (!read_product(function, product, out))
            continue;
        out->mask = sum->operands[1 - i].value;
        out->mask_fits = kiln_broadcasts_to(&out->mask->type, &product->type);
        out->single_reader &= kiln_value_single_use(value);
        return true;
    }
    return false;
}

/* How @transpose permutes, but for the last two dims; true where it only swaps these. */
static bool
rest_of(const KilnNode *transpose, int64_t perm[KILN_MAX_RANK], GError **error)
{
    int all[KILN_MAX_RANK], rank = transpose->results[0].type.rank;
    bool nothing = true;
    if (!kiln_transpose_perm(transpose, all, error))
        return false;
    for (int d = 0; d < rank; d++) {
        perm[d] = all[d < rank - 2 ? d : 2 * rank - 3 - d];
        nothing &= perm[d] == d;
    }
    return nothing;
}

/* Whether the dims in front of the last two are the same. */
static bool
same_batch(const KilnType *a, const KilnType *b)
{
    for (int d = 0; a->rank == b->rank && d < a->rank - 2; d++) {
        if (!kiln_type_equal_dims(a, d, b, d))
            return false;
    }
    return a->rank == b->rank;
}

static bool
raise_attention(KilnMatch *match)
{
    const KilnNode *softmax = kiln_match_node(match, "shares");
    const KilnType *shares = &softmax->results[0].type;
    KilnValue *v = kiln_match_value(match, "v");
    Scores scores;
    if (!read_scores(softmax->function, softmax->operands[0].value, &scores))
        return false;
    GUARD(matrices, shares->rank >= 2 && scores.q->type.rank >= 2);
    GUARD(shares_once, same_batch(shares, &match->root->results[0].type));
    GUARD(last_axis,
          kiln_type_axis(shares, kiln_attrs(softmax, softmax)->axis) == shares->rank - 1);
    GUARD(single_reader, scores.single_reader);
    GUARD(mask_fits, scores.mask_fits);
    GUARD(scale_normal, scores.scale == 0 || isnormal((float)scores.scale));
    GUARD(scale_fits, kiln_number_fits_attribute(scores.scale, v->type.dtype));
    const KilnNode *transpose = kiln_value_def_of(scores.keys, KILN_OP_transpose);
    GUARD(keys_transposed, transpose && scores.keys->type.rank >= 2);
    int64_t perm[KILN_MAX_RANK];
    KilnValue *k = transpose->operands[0].value;
    if (!rest_of(transpose, perm, match->error)) {
        GUARD(moves_no_more,
              transpose->function == softmax->function && kiln_value_single_use(scores.keys));
        KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)k->type.rank, .v = perm } };
        k = kiln_match_build(match, KILN_OP_transpose, &attrs, &k, 1);
    }
    KilnValue *operands[] = { scores.q, k, v, scores.mask };
    KilnAttrs_attention attrs = { .scale = (float)scores.scale };
    KilnValue *result =
        k ? kiln_match_build(match, KILN_OP_attention, &attrs, operands, scores.mask ? 4 : 3)
          : NULL;
    return kiln_match_replace(match, result);
}

static const KilnRule rules[] = {
    RULE("attention-formula", U, "(matmul (softmax!#shares ?:float) ?v:float)", raise_attention),
};

RULE_PASS(raise_attention, FORWARD);
