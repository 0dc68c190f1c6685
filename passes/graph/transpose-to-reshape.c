/* SPDX-License-Identifier: Apache-2.0 */
/* transpose-to-reshape: a transpose that moves only dims of extent 1 keeps the order of memory, so
 * that a reshape, which moves nothing, does the same.
 *
 *     x: [8,1,5]                 x: [8,1,5]
 *         |                          |
 *     transpose [1,0,2]    =>    reshape [1,8,5]
 *         |                          |
 *
 * requires nothing, preserves nothing; class E. The dims that are not 1 must keep their order; the
 * shape must be known. */
#include "passes/rule.h"

#include "graph/infer/infer.h"
#include "graph/op/reshape.h"

static bool
to_reshape(KilnMatch *match)
{
    KilnNode *node = match->root;
    KilnValue *x = kiln_match_value(match, "x");
    int perm[KILN_MAX_RANK];
    GUARD(static_shape, kiln_type_is_static(&x->type));
    GUARD(plain, !x->type.layout);
    GUARD(quantized_per_tensor, !x->type.quant || x->type.quant->axis < 0);
    if (!kiln_transpose_perm(node, perm, match->error))
        return false;
    int last = -1;
    for (int i = 0; i < x->type.rank; i++) {
        if (x->type.dims[perm[i]] == 1)
            continue;
        GUARD(order_kept, perm[i] > last);
        last = perm[i];
    }
    const KilnType *type = &node->results[0].type;
    KilnValue *shape =
        kiln_build_ints(match->root->function, node, type->dims, (uint32_t)type->rank);
    KilnAttrs_reshape attrs = { .allowzero = true }; /* an extent of 0 means 0 here */
    KilnNodeSpec spec = { .op = KILN_OP_reshape,
                          .operands = (KilnValue *[]){ x, shape },
                          .n_operands = 2,
                          .attrs = &attrs,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static const KilnRule rules[] = {
    RULE("transpose-to-reshape", E, "(transpose ?x)", to_reshape),
};

RULE_PASS(transpose_to_reshape, FORWARD);
