/* SPDX-License-Identifier: Apache-2.0 */
/* fold-arith-chain-into-bn: a chain of arithmetic with literals behind a batch normalization moves
 * into its scale and bias.
 *
 *        x   scale, bias, mean, var         x   scale · s, bias · s + a, mean, var
 *         \  /                               \  /
 *     batch_normalization        =>     batch_normalization
 *          |                                  |
 *        mul s
 *          |
 *        add a
 *          |
 *
 * The links are neg, and add, sub, mul and div with what varies along the channels at most; a
 * literal that is divided by the chain ends it.
 *
 * requires nothing, preserves nothing; class U: scale and bias are rounded once to their element
 * type, from double, in which they must be finite and the scale no denormal; values inside the
 * chain may lose no more than kiln_affine_keeps_precision() allows. In f16 and bf16 nothing may be
 * rounded away (kiln_literal_keeps_bits()). Each value of the
 * chain must have no other reader; scale and bias must be literal, mean and variance need not be.
 * Constants are never changed in place. Inference only. */
#include "graph/op/norm.h"
#include "passes/query/affine.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <math.h>

static const char rule[] = "arith-chain-into-bn";

static bool
is_batchnorm(KilnOp op)
{
    return op == KILN_OP_batch_normalization;
}

/* What the chain does to scale and bias; false where these cannot be read. */
static bool
append(KilnAffine *own, const KilnNode *bn, const KilnAffine *chain, GError **error)
{
    g_autofree double *scale = kiln_literal_read(kiln_literal_source(bn->operands[1].value), error);
    g_autofree double *bias =
        scale ? kiln_literal_read(kiln_literal_source(bn->operands[2].value), error) : NULL;
    if (!bias || !kiln_affine_init(own, chain->n, error))
        return false;
    for (int64_t c = 0; c < chain->n; c++) {
        own->factor[c] = scale[c] * chain->factor[c];
        own->offset[c] = bias[c] * chain->factor[c] + chain->offset[c];
    }
    return true;
}

/* A normalized value is around 1: the products in front of the bias are as large as the scale. */
static bool
keeps_precision(const KilnNode *bn, const KilnAffine *chain, GError **error)
{
    g_autofree double *scale = kiln_literal_read(kiln_literal_source(bn->operands[1].value), error);
    g_autofree double *bias =
        scale ? kiln_literal_read(kiln_literal_source(bn->operands[2].value), error) : NULL;
    for (int64_t c = 0; bias && c < chain->n; c++)
        scale[c] = fabs(scale[c]);
    if (!bias) /* no literals: literal_scale refuses */
        return !*error;
    return kiln_affine_keeps_precision(chain, scale, bias, bn->results[0].type.dtype);
}

/* The same normalization before @end with the factors and offsets of @own as scale and bias. */
static KilnNode *
build(const KilnNode *bn, const KilnAffine *own, KilnNode *end, GError **error)
{
    const KilnType *scale = &bn->operands[1].value->type, *bias = &bn->operands[2].value->type;
    KilnFunction *function = end->function;
    KilnValue *operands[5] = { bn->operands[0].value,
                               kiln_literal_build(function, end,
                                                  kiln_affine_constant(bn->operands[1].value)->name,
                                                  scale, own->factor, error),
                               NULL, bn->operands[3].value, bn->operands[4].value };
    if (!operands[1])
        return NULL;
    operands[2] = kiln_literal_build(
        function, end, kiln_affine_constant(bn->operands[2].value)->name, bias, own->offset, error);
    if (!operands[2])
        return NULL;
    KilnNodeSpec spec = { .op = KILN_OP_batch_normalization,
                          .name = bn->name,
                          .operands = operands,
                          .n_operands = 5,
                          .attrs = bn->attrs,
                          .types = &end->results[0].type,
                          .before = end };
    return kiln_node_new(function, &spec, error);
}

static bool
fold(KilnMatch *match)
{
    KilnNode *bn = match->root, *end = NULL;
    const KilnType *type = &bn->results[0].type;
    int axis = kiln_batchnorm_axis(bn);
    int64_t channels = axis < 0 ? 0 : MAX(type->dims[axis], 0);
    g_auto(KilnAffine) chain = { 0 };
    g_auto(KilnAffine) own = { 0 };
    if (!kiln_affine_init(&chain, channels, match->error) ||
        !kiln_affine_chain(match, &bn->results[0], axis, &chain, &end))
        return false;
    bool trains = kiln_attrs(bn, batch_normalization)->training_mode;
    GUARD(inference, !trains && kiln_pass_mode(match->context) == KILN_MODE_INFER);
    GUARD(literal_scale, append(&own, bn, &chain, match->error));
    GUARD(fits, kiln_affine_fits(&own, bn->operands[1].value->type.dtype) &&
                    kiln_affine_fits(&own, bn->operands[2].value->type.dtype));
    GUARD(keeps_bits, kiln_affine_keeps_bits(&own, bn->operands[1].value->type.dtype) &&
                          kiln_affine_keeps_bits(&own, bn->operands[2].value->type.dtype));
    GUARD(precise, keeps_precision(bn, &chain, match->error));
    KilnNode *folded = build(bn, &own, end, match->error);
    if (!folded)
        return false;
    kiln_affine_replace_chain(match, end, &folded->results[0]);
    return true;
}

GRAPH_PASS(fold_arith_chain_into_bn);

gboolean
kiln_pass_fold_arith_chain_into_bn(KilnFunction *function, KilnPassContext *context, bool *changed,
                                   GError **error)
{
    return kiln_affine_fold_all(function, is_batchnorm, rule, fold, context, changed, error);
}
