/* SPDX-License-Identifier: Apache-2.0 */
/* fold-softmax: the formula of softmax becomes the operator.
 *
 *        x
 *        |
 *       exp ────────┐                                     x
 *        |          |                                     |
 *        |     reduce_sum {one axis}        =>       softmax {axis}
 *        |          |
 *        └── div ───┘
 *
 *     softmax(x - reduce_max(x))            =>       softmax(x), log_softmax the same way
 *
 * The second where the maximum is taken over the softmax's axis, at least: what is the same along
 * it changes no share.
 *
 * requires nothing, preserves nothing; class U: the operator rounds once, and an exp that overflows
 * gives a share where the formula gave NaN. Nothing else may read the exp or the sum. */
#include "passes/rule.h"

#include "graph/op/softmax.h"
#include "passes/query/normalized.h"

static bool
fold_softmax(KilnMatch *match)
{
    const KilnNode *sum = kiln_match_node(match, "sum");
    KilnValue *x = kiln_match_value(match, "x");
    uint32_t dims = kiln_reduced_dims(sum);
    GUARD(one_axis, dims != 0 && (dims & (dims - 1)) == 0);
    GUARD(keeps_dims, kiln_keeps_dims(sum));
    GUARD(single_reader, kiln_match_value(match, "exp")->n_uses == 2);
    int axis = g_bit_nth_lsf(dims, -1);
    KilnAttrs_softmax attrs = { .axis = axis == x->type.rank - 1 ? -1 : axis };
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_softmax, &attrs, &x, 1));
}

/* The root's attributes are those of a softmax, for log_softmax, too. */
static bool
drop_shift(KilnMatch *match)
{
    const KilnNode *root = match->root, *max = kiln_match_node(match, "max");
    KilnValue *x = kiln_match_value(match, "x");
    int axis = kiln_type_axis(&x->type, kiln_attrs(root, softmax)->axis);
    GUARD(over_axis, axis >= 0 && (kiln_reduced_dims(max) >> axis & 1));
    GUARD(keeps_shift_dims, kiln_keeps_dims(max));
    return kiln_match_replace(match, kiln_match_build(match, root->op, root->attrs, &x, 1));
}

static const KilnRule rules[] = {
    RULE("softmax-formula", U, "(div (exp#exp ?x) (reduce_sum!#sum (exp#exp ?) ...)):float",
         fold_softmax),
    RULE("softmax-shift", U, "(softmax|log_softmax (sub! ?x:float (reduce_max!#max ?x ...)))",
         drop_shift),
};

RULE_PASS(fold_softmax, FORWARD);
