/* SPDX-License-Identifier: Apache-2.0 */
/* reduce-mean-to-avg-pool: the mean over both spatial dims of images is an average pool whose
 * window is the whole image.
 *
 *     x: [N,C,H,W]                         x: [N,C,H,W]
 *         |                                    |
 *     reduce_mean, axes {2,3}    =>     global_average_pool [N,C,1,1]
 *         |                                    |
 *                                       reshape [N,C]   where keepdims is off
 *                                              |
 *
 * requires nothing, preserves nothing; class U: a pool may sum in another order. Exactly the last
 * two of four dims: other ranks and axes have no pool. Floats only, which is what pools compute. */
#include "passes/rule.h"

#include "graph/infer/infer.h"
#include "graph/op/pool.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"

static bool
to_pool(KilnMatch *match)
{
    KilnNode *mean = match->root;
    KilnValue *x = kiln_match_value(match, "x");
    bool reduced[KILN_MAX_RANK] = { false }, known = false;
    GUARD(rank_four, x->type.rank == 4);
    GUARD(plain, !x->type.layout);
    if (!kiln_reduce_axes(mean, reduced, &known, match->error))
        return false;
    GUARD(last_two, known && !reduced[0] && !reduced[1] && reduced[2] && reduced[3]);
    KilnValue *pool = kiln_match_build(match, KILN_OP_global_average_pool, NULL, &x, 1);
    if (pool && !kiln_attrs(mean, reduce_mean)->keepdims) {
        /* An extent of 0 in the shape stands for that of the operand. */
        KilnValue *shape =
            kiln_build_ints(match->root->function, mean, (const int64_t[]){ 0, 0 }, 2);
        pool = kiln_match_build(match, KILN_OP_reshape, NULL, (KilnValue *[]){ pool, shape }, 2);
    }
    return kiln_match_replace(match, pool);
}

static const KilnRule rules[] = {
    RULE("reduce-mean-to-avg-pool", U, "(reduce_mean ?x:float ...)", to_pool),
};

RULE_PASS(reduce_mean_to_avg_pool, FORWARD);
