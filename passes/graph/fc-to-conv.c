/* SPDX-License-Identifier: Apache-2.0 */
/* fc-to-conv: a gemm with literal weights becomes a convolution of images of one element.
 *
 *     x: [M,K]   w: [K,N], b: [N]         x: [M,K]
 *           \      /                         |
 *             gemm                        unsqueeze [M,K,1,1]
 *              |                              |
 *                               =>          conv   transpose(w) as [N,K,1,1], b
 *                                             |
 *                                         squeeze [M,N]
 *                                             |
 *
 * For targets that have a kernel for convolutions only; in no shipped pipeline. Transposing and
 * reshaping the weights is left to constant-fold.
 *
 * requires nothing, preserves nothing; class U: a kernel may sum in another order. The factors
 * alpha and beta must be 1, x not transposed, and the bias one number per column. */
#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "graph/op/reshape.h"
#include "graph/op/transpose.h"
#include "passes/rule.h"

/* [N,K,1,1] of [K,N], or of [N,K] where they are transposed already. */
static KilnValue *
conv_weights(KilnMatch *match, bool transposed, KilnValue *last_dims)
{
    KilnValue *weights = kiln_match_value(match, "w");
    if (!transposed)
        weights = kiln_match_build(match, KILN_OP_transpose, NULL, &weights, 1);
    if (!weights)
        return NULL;
    return kiln_match_build(match, KILN_OP_unsqueeze, NULL, (KilnValue *[]){ weights, last_dims },
                            2);
}

static bool
to_conv(KilnMatch *match)
{
    KilnNode *gemm = match->root;
    KilnFunction *function = match->root->function;
    const KilnAttrs_gemm *attrs = kiln_attrs(gemm, gemm);
    const KilnType *type = &gemm->results[0].type;
    KilnValue *bias = kiln_node_operand(gemm, 2);
    GUARD(plain, !type->layout);
    GUARD(no_factors, attrs->alpha == 1 && (attrs->beta == 1 || !bias));
    GUARD(rows_stay, !attrs->transA);
    GUARD(rank_known, gemm->operands[0].value->type.rank == 2);
    GUARD(bias_per_column,
          !bias || (bias->type.rank == 1 && kiln_type_equal_dims(&bias->type, 0, type, 1)));
    KilnValue *last_dims = kiln_build_ints(function, gemm, (const int64_t[]){ 2, 3 }, 2);
    KilnValue *weights = conv_weights(match, attrs->transB, last_dims);
    KilnValue *image =
        weights ? kiln_match_build(match, KILN_OP_unsqueeze, NULL,
                                   (KilnValue *[]){ gemm->operands[0].value, last_dims }, 2)
                : NULL;
    KilnAttrs_conv conv_attrs = { .auto_pad = "NOTSET", .group = 1 };
    KilnValue *conv = image
                          ? kiln_match_build(match, KILN_OP_conv, &conv_attrs,
                                             (KilnValue *[]){ image, weights, bias }, bias ? 3 : 2)
                          : NULL;
    if (!conv)
        return false;
    KilnNodeSpec spec = { .op = KILN_OP_squeeze,
                          .operands = (KilnValue *[]){ conv, last_dims },
                          .n_operands = 2,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static const KilnRule rules[] = {
    RULE("fc-to-conv", U, "(gemm ? $w ...):float", to_conv),
};

RULE_PASS(fc_to_conv, FORWARD);
