/* SPDX-License-Identifier: Apache-2.0 */
/* transpose-to-reshape: a transpose that moves only dims of extent 1 keeps the order of memory, so
 * that a reshape, which moves nothing, does the same.
 *
 *     x: [8,1,5]                 x: [8,1,5]
 *         |                          |
 *     transpose [1,0,2]    =>    reshape [1,8,5]
 *         |                          |
 *
 * requires nothing, preserves nothing; class E. The dims that are not certainly 1 must keep their
 * order; a reshape must be able to state the shape. */
#include "graph/infer/infer.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

static bool
to_reshape(KilnMatch *match)
{
    KilnNode *node = match->root;
    KilnValue *x = kiln_match_value(match, "x");
    int perm[KILN_MAX_RANK];
    GUARD(plain, !x->type.layout);
    GUARD(quantized_per_tensor, !x->type.quant || x->type.quant->axis < 0);
    if (x->type.rank < 0 || !kiln_transpose_perm(node, perm, match->error))
        return false;
    int last = -1;
    for (int i = 0; i < x->type.rank; i++) {
        if (x->type.dims[perm[i]] == 1)
            continue;
        GUARD(order_kept, perm[i] > last);
        last = perm[i];
    }
    return kiln_match_replace(
        match, kiln_reshape_build(node->function, node, x, &node->results[0].type, match->error));
}

static const KilnRule rules[] = {
    RULE("transpose-to-reshape", E, "(transpose ?x)", to_reshape),
};

RULE_PASS(transpose_to_reshape, FORWARD);
