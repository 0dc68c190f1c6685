/* SPDX-License-Identifier: Apache-2.0 */
/* merge-transposes: a transpose of a transpose becomes one; a transpose that permutes nothing goes.
 *
 *        x                   x                      x              x
 *        |                   |                      |              |
 *    transpose p         transpose q           transpose id  =>    |
 *        |          =>       |                      |              |
 *    transpose q'            q[i] = p[q'[i]]
 *        |                   |
 *
 * requires nothing, preserves nothing; class E. The inner transpose may have other readers: they
 * keep it. */
#include "passes/rule.h"

#include "graph/infer/infer.h"
#include "graph/op/transpose.h"

static bool
merge(KilnMatch *match)
{
    const KilnNode *inner = kiln_match_node(match, "inner"), *outer = match->root;
    KilnValue *x = kiln_match_value(match, "x");
    int first[KILN_MAX_RANK], second[KILN_MAX_RANK];
    int64_t composed[KILN_MAX_RANK];
    GUARD(ranked, x->type.rank >= 0);
    GUARD(plain,
          !x->type.layout && !inner->results[0].type.layout && !outer->results[0].type.layout);
    if (!kiln_transpose_perm(inner, first, match->error) ||
        !kiln_transpose_perm(outer, second, match->error))
        return false;
    for (int i = 0; i < x->type.rank; i++)
        composed[i] = first[second[i]];
    KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)x->type.rank, .v = composed } };
    KilnNodeSpec spec = { .op = KILN_OP_transpose,
                          .operands = &x,
                          .n_operands = 1,
                          .attrs = &attrs,
                          /* a name of a dim may be stated */
                          .types = &outer->results[0].type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static bool
drop_identity(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    int perm[KILN_MAX_RANK];
    GUARD(ranked, x->type.rank >= 0);
    if (!kiln_transpose_perm(match->root, perm, match->error))
        return false;
    for (int i = 0; i < x->type.rank; i++)
        GUARD(permutes_nothing, perm[i] == i);
    return kiln_match_replace(match, x);
}

static const KilnRule rules[] = {
    RULE("identity-transpose", E, "(transpose ?x)", drop_identity),
    RULE("merge-transposes", E, "(transpose (transpose#inner ?x))", merge),
};

RULE_PASS(merge_transposes, FORWARD);
