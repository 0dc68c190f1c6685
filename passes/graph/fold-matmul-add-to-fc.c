/* SPDX-License-Identifier: Apache-2.0 */
/* fold-matmul-add-to-fc: a matrix product and what is added to it become one gemm, which is ONNX's
 * fully connected layer.
 *
 *      a   b                   a   b   c
 *       \ /                     \  |  /
 *     matmul   c      =>         gemm
 *         \   /                    |
 *          add
 *
 * The same for a gemm without a third operand. c must broadcast to the product's shape; it need not
 * be literal. Rank 2 only: gemm has no batch dims (split-batched-matmul gives products whose batch
 * dims are rows that form).
 *
 * requires nothing, preserves nothing; class U: the sum is rounded at other places. The product
 * must have no other reader. Floats only: integers gain nothing from it. */
#include "graph/op/matmul.h"
#include "passes/query/literal.h"
#include "passes/rule.h"

static bool
merge_add(KilnMatch *match)
{
    KilnNode *add = match->root, *product = kiln_match_node(match, "product");
    KilnValue *c = kiln_match_value(match, "c");
    const KilnType *type = &product->results[0].type;
    GUARD(plain, !type->layout);
    GUARD(rank_two, type->rank == 2 && product->operands[0].value->type.rank == 2 &&
                        product->operands[1].value->type.rank == 2);
    GUARD(broadcasts, kiln_broadcasts_to(&c->type, type));
    KilnAttrs_gemm attrs = { .alpha = 1, .beta = 1 };
    if (product->op == KILN_OP_gemm) {
        attrs = *kiln_attrs(product, gemm);
        attrs.beta = 1;
    }
    KilnNodeSpec spec = { .op = KILN_OP_gemm,
                          .name = product->name,
                          .operands = (KilnValue *[]){ product->operands[0].value,
                                                       product->operands[1].value, c },
                          .n_operands = 3,
                          .attrs = &attrs,
                          .types = &add->results[0].type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static const KilnRule rules[] = {
    RULE("product-add", U, "(add~ (matmul|gemm#product! ? ?):float ?c)", merge_add),
};

RULE_PASS(fold_matmul_add_to_fc, FORWARD);
