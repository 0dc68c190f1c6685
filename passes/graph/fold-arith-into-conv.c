/* SPDX-License-Identifier: Apache-2.0 */
/* fold-arith-into-conv: arithmetic with literals behind a convolution or a matrix product moves
 * into its weights and bias.
 *
 *      x   w, b                     x   w · (s / d), (b · s + a) / d
 *       \  /                         \  /
 *       conv                         conv
 *        |                            |
 *      mul s            =>
 *        |
 *      add a
 *        |
 *      div d
 *        |
 *
 * s, a and d vary along the channels at most: scalars, splats, [C,1,1], [1,C,1,1]. The same for sub
 * on either side, and for conv_transpose, gemm and matmul, of which the columns are the channels. A
 * matmul of rank 2 becomes a gemm where something is added; one with batch dims keeps one add
 * behind it. A literal that is divided by what the convolution gave ends the chain.
 *
 * requires nothing, preserves nothing; class U: products are rounded once to the element type, from
 * double; values inside the chain may lose no more than kiln_affine_keeps_precision() allows. In
 * f16 and bf16 nothing may be rounded away (kiln_literal_keeps_bits()): behind lower-halves,
 * literals that are a cast of 16 bits merge in f32. Each value of the chain must have no other
 * reader; weights must be literal where something scales, the bias where there is one; nothing may
 * overflow, and the largest weight of a channel must stay a normal number. Constants are never
 * changed in place. Inference only: training moves weights and factors apart. */
#include "graph/op/additive.h"
#include "graph/op/conv.h"
#include "graph/op/matmul.h"
#include "passes/query/affine.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

#include <string.h>

static const char rule[] = "arith-into-conv";

static bool
is_product(KilnOp op)
{
    return op == KILN_OP_conv || op == KILN_OP_conv_transpose || op == KILN_OP_matmul ||
           op == KILN_OP_gemm;
}

/* A matmul with batch dims has no bias: what is added goes behind it. */
static KilnValue *
add_offset(KilnNode *product, const double *offset, KilnNode *end, GError **error)
{
    const KilnType *type = &product->results[0].type;
    KilnType vector = kiln_type_make(type->dtype, 1, &type->dims[type->rank - 1]);
    g_autofree char *name = g_strdup_printf("%s_bias", kiln_node_label(product));
    KilnValue *bias = kiln_literal_build(end->function, end, name, &vector, offset, error);
    if (!bias)
        return NULL;
    KilnValue *operands[] = { &product->results[0], bias };
    return kiln_build_typed(end, KILN_OP_add, NULL, operands, 2, &end->results[0].type, error);
}

static bool
fold(KilnMatch *match)
{
    KilnNode *product = match->root, *end = NULL;
    const KilnType *type = &product->results[0].type;
    int axis = kiln_product_axis(product);
    int64_t channels = axis < 0 ? 0 : MAX(type->dims[axis], 0);
    g_auto(KilnAffine) affine = { 0 };
    if (!kiln_affine_init(&affine, channels, match->error))
        return false;
    uint32_t links = kiln_affine_chain(match, &product->results[0], axis, &affine, &end);
    if (!links)
        return false;
    GUARD(inference, kiln_pass_mode(match->context) == KILN_MODE_INFER);
    GUARD(keeps_bits, kiln_product_keeps_bits(product, &affine, match->error));
    GUARD(precise, !kiln_dtype_is_float(type->dtype) ||
                       kiln_product_keeps_precision(product, &affine, match->error));
    g_autofree double *offset = NULL;
    if (product->op == KILN_OP_matmul && type->rank != 2 && kiln_affine_shifts(&affine)) {
        GUARD(shortens, links > 1 || kiln_affine_scales(&affine));
        offset = g_memdup2(affine.offset, (size_t)channels * sizeof *offset);
        memset(affine.offset, 0, (size_t)channels * sizeof *affine.offset);
    }
    KilnNode *folded;
    if (!kiln_affine_absorb(match, product, &affine, end, &folded))
        return false;
    KilnValue *value = &folded->results[0];
    if (offset)
        value = add_offset(folded, offset, end, match->error);
    if (value)
        kiln_affine_replace_chain(match, end, value);
    return value;
}

GRAPH_PASS(fold_arith_into_conv);

gboolean
kiln_pass_fold_arith_into_conv(KilnFunction *function, KilnPassContext *context, bool *changed,
                               GError **error)
{
    return kiln_affine_fold_all(function, is_product, rule, fold, context, changed, error);
}
