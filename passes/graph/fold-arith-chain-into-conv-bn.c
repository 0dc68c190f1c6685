/* SPDX-License-Identifier: Apache-2.0 */
/* fold-arith-chain-into-conv-bn: a chain of arithmetic with literals behind a convolution becomes
 * one batch normalization, which fold-batchnorm puts into the weights, or which costs one node.
 *
 *       conv                         conv
 *        |                            |
 *      mul s            =>     batch_normalization (s, a, mean 0, variance 1, epsilon 0)
 *        |                            |
 *      add a
 *        |
 *
 * The links are neg, and add, sub, mul and div with what varies along the channels at most; a
 * literal that is divided by the chain ends it. The same behind conv_transpose.
 *
 * requires nothing, preserves nothing; class U: s and a are rounded once to the element type, from
 * double, in which they must be finite and s no denormal; values inside the chain may lose no more
 * than kiln_affine_keeps_precision() allows. In f16 and bf16 nothing may be rounded away
 * (kiln_literal_keeps_bits()). Each value of the chain must have no
 * other reader. Where the weights vary at run time the chain must have two links or more, for then
 * the batch normalization stays. Inference only. */
#include "graph/op/conv.h"
#include "graph/op/norm.h"
#include "passes/query/affine.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

static const char rule[] = "arith-chain-into-conv-bn";

static bool
is_conv(KilnOp op)
{
    return op == KILN_OP_conv || op == KILN_OP_conv_transpose;
}

static KilnValue *
normalize(KilnNode *conv, const KilnAffine *affine, KilnNode *end, GError **error)
{
    KilnFunction *function = end->function;
    KilnType type = kiln_type_make(conv->results[0].type.dtype, 1, &affine->n);
    g_autofree char *name = g_strdup_printf("%s_scale", kiln_node_label(conv));
    g_autofree char *bias_name = g_strdup_printf("%s_shift", kiln_node_label(conv));
    KilnValue *scale = kiln_literal_build(function, end, name, &type, affine->factor, error);
    KilnValue *bias =
        scale ? kiln_literal_build(function, end, bias_name, &type, affine->offset, error) : NULL;
    if (!bias)
        return NULL;
    KilnAttrs_batch_normalization attrs = { .epsilon = 0, .momentum = 0.9f, .axis = 1 };
    KilnNodeSpec spec = { .op = KILN_OP_batch_normalization,
                          .operands =
                              (KilnValue *[]){
                                  &conv->results[0], scale, bias,
                                  kiln_literal_build_splat(function, end, "mean", &type, 0),
                                  kiln_literal_build_splat(function, end, "variance", &type, 1) },
                          .n_operands = 5,
                          .attrs = &attrs,
                          .types = &end->results[0].type,
                          .before = end };
    KilnNode *bn = kiln_node_new(function, &spec, error);
    return bn ? &bn->results[0] : NULL;
}

static bool
fold(KilnMatch *match)
{
    KilnNode *conv = match->root, *end = NULL;
    const KilnType *type = &conv->results[0].type;
    int64_t channels = type->rank < 2 ? 0 : MAX(type->dims[1], 0);
    g_auto(KilnAffine) affine = { 0 };
    if (!kiln_affine_init(&affine, channels, match->error))
        return false;
    uint32_t links =
        kiln_affine_chain(match, &conv->results[0], type->rank < 2 ? -1 : 1, &affine, &end);
    if (!links)
        return false;
    GUARD(inference, kiln_pass_mode(match->context) == KILN_MODE_INFER);
    GUARD(pays, links > 1 || kiln_value_constant(conv->operands[1].value));
    GUARD(fits, kiln_affine_fits(&affine, type->dtype));
    GUARD(keeps_bits, kiln_affine_keeps_bits(&affine, type->dtype));
    GUARD(precise, kiln_product_keeps_precision(conv, &affine, match->error));
    KilnValue *value = normalize(conv, &affine, end, match->error);
    if (!value)
        return false;
    kiln_affine_replace_chain(match, end, value);
    return true;
}

GRAPH_PASS(fold_arith_chain_into_conv_bn);

gboolean
kiln_pass_fold_arith_chain_into_conv_bn(KilnFunction *function, KilnPassContext *context,
                                        bool *changed, GError **error)
{
    return kiln_affine_fold_all(function, is_conv, rule, fold, context, changed, error);
}
