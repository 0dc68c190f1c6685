/* SPDX-License-Identifier: Apache-2.0 */
/* raise-log-softmax: the logarithm of shares becomes one operator.
 *
 *     log(softmax(x))                      =>  log_softmax(x)
 *     x - reduce_log_sum_exp(x)            =>  log_softmax(x)      along one axis that is kept
 *     x - log(reduce_sum(exp(x)))          =>  log_softmax(x)      the same
 *
 * requires nothing, preserves nothing; class U: the operator rounds once, and a share too small for
 * its type has a logarithm where the formula gave minus infinity. Nothing else may read the shares.
 */
#include "passes/rule.h"

#include "graph/op/softmax.h"
#include "passes/query/normalized.h"

static bool
raise_log(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    KilnAttrs_log_softmax attrs = {
        .axis = kiln_attrs(kiln_match_node(match, "shares"), softmax)->axis
    };
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_log_softmax, &attrs, &x, 1));
}

static bool
raise_difference(KilnMatch *match)
{
    const KilnNode *sum = kiln_match_node(match, "sum");
    KilnValue *x = kiln_match_value(match, "x");
    uint32_t dims = kiln_reduced_dims(sum);
    GUARD(one_axis, dims != 0 && (dims & (dims - 1)) == 0);
    GUARD(keeps_dims, kiln_keeps_dims(sum));
    int axis = g_bit_nth_lsf(dims, -1);
    KilnAttrs_log_softmax attrs = { .axis = axis == x->type.rank - 1 ? -1 : axis };
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_log_softmax, &attrs, &x, 1));
}

static const KilnRule rules[] = {
    RULE("log-of-softmax", U, "(log (softmax!#shares ?x:float))", raise_log),
    RULE("minus-log-sum-exp", U, "(sub ?x:float (reduce_log_sum_exp!#sum ?x ...))",
         raise_difference),
    RULE("minus-log-of-sum", U, "(sub ?x:float (log! (reduce_sum!#sum (exp! ?x) ...)))",
         raise_difference),
};

RULE_PASS(raise_log_softmax, FORWARD);
