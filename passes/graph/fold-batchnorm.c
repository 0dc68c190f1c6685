/* SPDX-License-Identifier: Apache-2.0 */
/* fold-batchnorm: a batch normalization in inference mode disappears into the convolution or matrix
 * product that feeds it.
 *
 *     x   w, b                          x   w', b'
 *      \  /                              \  /
 *      conv                =>            conv         A     = scale / sqrt(var + epsilon)
 *       |   scale, bias, mean, var        |           w'[c] = w[c] · A[c]
 *     batch_normalization                             b'[c] = (b[c] - mean[c]) · A[c] + bias[c]
 *       |
 *
 * The same for conv_transpose, gemm and matmul, of which the columns are the channels; a matmul
 * becomes a gemm, which has a bias. One that multiplies by 1 and adds 0 disappears alone. And a
 * product whose batch is made rows for the normalization has these rows before (class E):
 *
 *     x: [B,M,K]   w: [K,N]             x as [B·M,K]   w
 *          \       /                            \     /
 *            matmul                =>             matmul
 *              |                                    |
 *       reshape [B·M,N]                     batch_normalization
 *              |
 *      batch_normalization
 *
 * requires nothing, preserves nothing; class U: the products of weights and scale are rounded once
 * to the element type, from double; the product plus its bias may lose no more than
 * kiln_affine_keeps_precision() allows. In f16 and bf16 they must round nothing away
 * (kiln_literal_keeps_bits()): behind lower-halves, literals that are a cast of 16 bits merge in
 * f32. The product must have no other reader; weights and statistics must be literal, nothing may
 * overflow, and the largest weight of a channel must stay a normal number. Constants are never
 * changed in place: others may read them. */
#include "graph/op/norm.h"
#include "passes/query/affine.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

/* False where a statistic cannot be read: it varies, or is quantized. */
static bool
read_statistics(const KilnNode *bn, KilnAffine *affine, GError **error)
{
    for (uint32_t i = 1; i < 5; i++) {
        if (!kiln_affine_constant(bn->operands[i].value))
            return false;
    }
    return kiln_affine_init(affine, kiln_type_elements(&bn->operands[1].value->type), error) &&
           kiln_affine_append_batchnorm(affine, bn, error);
}

static bool
fold_into(KilnMatch *match)
{
    KilnNode *bn = match->root, *product = kiln_match_node(match, "product"), *folded;
    GUARD(inference,
          kiln_pass_mode(match->context) == KILN_MODE_INFER && kiln_batchnorm_infers(bn));
    GUARD(channel_axis, kiln_attrs(bn, batch_normalization)->axis == 1);
    g_auto(KilnAffine) affine = { 0 };
    GUARD(plain_statistics, read_statistics(bn, &affine, match->error));
    GUARD(literal, kiln_affine_constant(kiln_match_value(match, "w")));
    GUARD(keeps_bits, kiln_product_keeps_bits(product, &affine, match->error));
    GUARD(precise, kiln_product_keeps_precision(product, &affine, match->error));
    return kiln_affine_absorb(match, product, &affine, bn, &folded) &&
           kiln_match_replace(match, &folded->results[0]);
}

/* Columns are channels where there is nothing but rows and columns. */
static bool
fold_into_gemm(KilnMatch *match)
{
    GUARD(column_axis, kiln_product_axis(kiln_match_node(match, "product")) == 1);
    return fold_into(match);
}

static bool
rows_before_product(KilnMatch *match)
{
    KilnNode *bn = match->root, *product = kiln_match_node(match, "product");
    const KilnType *rows = &kiln_match_node(match, "view")->results[0].type;
    KilnValue *x = kiln_match_value(match, "x"), *w = kiln_match_value(match, "w");
    GUARD(inference, kiln_batchnorm_infers(bn));
    GUARD(one_matrix, x->type.rank >= 2 && !x->type.layout && w->type.rank == 2);
    GUARD(keeps_columns, rows->rank == 2 && kiln_batchnorm_axis(bn) == 1 && rows->dims[1] > 0 &&
                             kiln_type_equal_dims(rows, 1, &w->type, 1));
    KilnType type = *rows;
    type.dtype = x->type.dtype;
    type.dims[1] = w->type.dims[0];
    type.open[1] = w->type.open[0];
    KilnValue *flat = kiln_reshape_build(match->root->function, bn, x, &type, match->error);
    KilnValue *operands[] = { flat, w };
    KilnValue *y = flat ? kiln_match_build(match, product->op, product->attrs, operands, 2) : NULL;
    if (!y)
        return false;
    KilnValue *normalized[] = { y, bn->operands[1].value, bn->operands[2].value,
                                bn->operands[3].value, bn->operands[4].value };
    return kiln_match_replace(match, kiln_match_build(match, bn->op, bn->attrs, normalized, 5));
}

static bool
drop_identity(KilnMatch *match)
{
    KilnNode *bn = match->root;
    KilnValue *x = kiln_match_value(match, "x");
    GUARD(inference,
          kiln_pass_mode(match->context) == KILN_MODE_INFER && kiln_batchnorm_infers(bn));
    g_auto(KilnAffine) affine = { 0 };
    GUARD(plain_statistics, read_statistics(bn, &affine, match->error));
    GUARD(changes_nothing, !kiln_affine_scales(&affine) && !kiln_affine_shifts(&affine));
    GUARD(precise,
          kiln_batchnorm_keeps_precision(&affine, kiln_affine_constant(bn->operands[1].value),
                                         x->type.dtype, match->error));
    return kiln_match_replace(match, x);
}

static const KilnRule rules[] = {
    RULE("batchnorm-identity", U, "(batch_normalization ?x ? ? ? ?)", drop_identity),
    RULE("batchnorm-into-conv", U,
         "(batch_normalization (conv|conv_transpose#product! ?x ?w ...) ? ? ? ?)", fold_into),
    RULE("batchnorm-into-gemm", U, "(batch_normalization (matmul|gemm#product! ?x ?w ...) ? ? ? ?)",
         fold_into_gemm),
    RULE("rows-before-product", E,
         "(batch_normalization (reshape|flatten#view! (matmul#product! ?x:float ?w):float ...) $ $ "
         "$ $)",
         rows_before_product),
};

RULE_PASS(fold_batchnorm, FORWARD);
