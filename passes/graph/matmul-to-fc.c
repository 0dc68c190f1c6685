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
#include "passes/rule.h"

static bool
to_gemm(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    KilnNode *matmul = kiln_match_root(match);
    const KilnType *type = &matmul->results[0].type;
    GUARD(plain, !type->layout);
    GUARD(rank_two,
          matmul->operands[0].value->type.rank == 2 && matmul->operands[1].value->type.rank == 2);
    KilnNodeSpec spec = { .op = KILN_OP_gemm,
                          .name = matmul->name,
                          .operands = (KilnValue *[]){ matmul->operands[0].value,
                                                       matmul->operands[1].value },
                          .n_operands = 2,
                          .types = type,
                          .before = matmul };
    KilnNode *gemm = kiln_node_new(kiln_match_function(match), &spec, error);
    return gemm && kiln_match_replace(match, context, rule, &gemm->results[0]);
}

static const KilnRule rules[] = {
    RULE("matmul-to-fc", U, "(matmul ? ?):float", to_gemm),
};

const KilnRule *
kiln_pass_rules_matmul_to_fc(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_matmul_to_fc(KilnFunction *function, KilnPassContext *context, bool *changed,
                       GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
