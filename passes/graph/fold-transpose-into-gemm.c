/* SPDX-License-Identifier: Apache-2.0 */
/* fold-transpose-into-gemm: a product of matrices reads a transposed operand as it was, or writes
 * its result the other way.
 *
 *     a                 a  b          a  b                b  a
 *     |                  \ |           \ |                 \ |
 *  transpose  b   =>   gemm           gemm       =>       gemm
 *       \    /       {transA}           |             {transA, transB
 *        gemm                       transpose           swapped and inverted}
 *
 * and the same with b and transB, and for matmul of two matrices, which becomes a gemm. A bias
 * keeps a result from being turned, for it would have to be turned too.
 *
 * requires nothing, preserves nothing; class U: the same products are summed in the same order,
 * but targets may compute transposed operands in other blocks. Each rule leaves a transpose with
 * one reader less or takes it away, so the pass ends. */
#include "graph/op/matmul.h"
#include "passes/permute/permute.h"
#include "passes/rule.h"

static bool
swaps_matrix(const KilnNode *transpose)
{
    KilnPerm perm = kiln_perm_of(transpose);
    return perm.rank == 2 && perm.at[0] == 1;
}

static bool
is_float_matrix(const KilnValue *value)
{
    return value->type.rank == 2 && kiln_dtype_is_float(value->type.dtype) && !value->type.layout &&
           !value->type.quant;
}

static KilnAttrs_gemm
attrs_of(const KilnNode *product)
{
    if (product->op == KILN_OP_gemm)
        return *kiln_attrs(product, gemm);
    return (KilnAttrs_gemm){ .alpha = 1, .beta = 1 };
}

static bool
replace(KilnMatch *match, const KilnNodeSpec *with)
{
    KilnNodeSpec spec = *with;
    spec.op = KILN_OP_gemm;
    spec.types = &match->root->results[0].type;
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

/* Operand @side of the product is a transpose. */
static bool
fold_operand(KilnMatch *match, uint32_t side)
{
    const KilnNode *product = match->root;
    const KilnNode *transpose = kiln_match_node(match, "transpose");
    KilnValue *operands[3];
    KilnAttrs_gemm attrs = attrs_of(product);
    GUARD(swaps_matrix, swaps_matrix(transpose));
    GUARD(matrices, is_float_matrix(product->operands[0].value) &&
                        is_float_matrix(product->operands[1].value));
    for (uint32_t i = 0; i < 3; i++)
        operands[i] = kiln_node_operand(product, i);
    operands[side] = transpose->operands[0].value;
    *(side == 0 ? &attrs.transA : &attrs.transB) ^= true;
    KilnNodeSpec spec = { .name = product->name,
                          .operands = operands,
                          .n_operands = operands[2] ? 3 : 2,
                          .attrs = &attrs };
    return replace(match, &spec);
}

static bool
fold_left(KilnMatch *match)
{
    return fold_operand(match, 0);
}

static bool
fold_right(KilnMatch *match)
{
    return fold_operand(match, 1);
}

static bool
fold_result(KilnMatch *match)
{
    const KilnNode *product = kiln_match_node(match, "product");
    KilnValue *operands[] = { product->operands[1].value, product->operands[0].value };
    KilnAttrs_gemm attrs = attrs_of(product);
    bool was_left = attrs.transA;
    GUARD(swaps_matrix, swaps_matrix(match->root));
    GUARD(matrices, is_float_matrix(operands[0]) && is_float_matrix(operands[1]));
    GUARD(no_bias, !kiln_node_operand(product, 2));
    attrs.transA = !attrs.transB;
    attrs.transB = !was_left;
    KilnNodeSpec spec = {
        .name = product->name, .operands = operands, .n_operands = 2, .attrs = &attrs
    };
    return replace(match, &spec);
}

static const KilnRule rules[] = {
    RULE("fold-transpose-into-left", U, "(matmul|gemm (transpose#transpose ?) ? ...)", fold_left),
    RULE("fold-transpose-into-right", U, "(matmul|gemm ? (transpose#transpose ?) ...)", fold_right),
    RULE("fold-transpose-into-result", U, "(transpose (matmul|gemm#product! ? ? ...))",
         fold_result),
};

RULE_PASS(fold_transpose_into_gemm, FORWARD);
