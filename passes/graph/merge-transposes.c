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

static bool
merge(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    const KilnNode *inner = kiln_match_node(match, "inner"), *outer = kiln_match_root(match);
    KilnValue *x = kiln_match_value(match, "x");
    int first[KILN_MAX_RANK], second[KILN_MAX_RANK];
    int64_t composed[KILN_MAX_RANK];
    GUARD(ranked, x->type.rank >= 0);
    GUARD(plain,
          !x->type.layout && !inner->results[0].type.layout && !outer->results[0].type.layout);
    if (!kiln_transpose_perm(inner, first, error) || !kiln_transpose_perm(outer, second, error))
        return false;
    for (int i = 0; i < x->type.rank; i++)
        composed[i] = first[second[i]];
    KilnAttrs_transpose attrs = { .perm = { (uint32_t)x->type.rank, composed } };
    KilnNodeSpec spec = { .op = KILN_OP_transpose,
                          .operands = &x,
                          .n_operands = 1,
                          .attrs = &attrs,
                          .types = &outer->results[0].type, /* a name of a dim may be stated */
                          .before = kiln_match_root(match) };
    KilnNode *merged = kiln_node_new(kiln_match_function(match), &spec, error);
    return merged && kiln_match_replace(match, context, rule, &merged->results[0]);
}

static bool
drop_identity(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    KilnValue *x = kiln_match_value(match, "x");
    int perm[KILN_MAX_RANK];
    GUARD(ranked, x->type.rank >= 0);
    if (!kiln_transpose_perm(kiln_match_root(match), perm, error))
        return false;
    for (int i = 0; i < x->type.rank; i++)
        GUARD(permutes_nothing, perm[i] == i);
    return kiln_match_replace(match, context, rule, x);
}

static const KilnRule rules[] = {
    RULE("identity-transpose", E, "(transpose ?x)", drop_identity),
    RULE("merge-transposes", E, "(transpose (transpose#inner ?x))", merge),
};

const KilnRule *
kiln_pass_rules_merge_transposes(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_merge_transposes(KilnFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
