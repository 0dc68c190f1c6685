/* SPDX-License-Identifier: Apache-2.0 */
/* matmul-to-fc: a matrix product of rank 2 becomes a gemm without a third operand.
 *
 *      a   b            a   b
 *       \ /              \ /
 *     matmul     =>     gemm
 *        |                |
 *
 * For targets that have a kernel for the fully connected layer only; in no shipped pipeline.
 *
 * requires nothing, preserves nothing; class U: a kernel may sum in another order. */
#include "graph/op/matmul.h"
#include "passes/rule.h"

static bool
to_gemm(KilnMatch *match)
{
    KilnNode *matmul = match->root;
    const KilnType *type = &matmul->results[0].type;
    GUARD(plain, !type->layout);
    GUARD(rank_two,
          matmul->operands[0].value->type.rank == 2 && matmul->operands[1].value->type.rank == 2);
    KilnNodeSpec spec = { .op = KILN_OP_gemm,
                          .name = matmul->name,
                          .operands = (KilnValue *[]){ matmul->operands[0].value,
                                                       matmul->operands[1].value },
                          .n_operands = 2,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static const KilnRule rules[] = {
    RULE("matmul-to-fc", U, "(matmul ? ?):float", to_gemm),
};

RULE_PASS(matmul_to_fc, FORWARD);
