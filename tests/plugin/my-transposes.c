/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in that docs/add-a-pass.md shows. */
#include <passes/kiln-pass.h>
#include <graph/op/transpose.h>

/* The axes of @node in the order of its result. The default is the reverse order. */
static int64_t
axis_of(const KilnNode *node, int rank, int i)
{
    const KilnAttrs_transpose *attrs = (const KilnAttrs_transpose *)node->attrs;
    return attrs->perm.n ? attrs->perm.v[i] : rank - 1 - i;
}

/*   x -> transpose -> transpose   =>   x -> transpose */
static bool
merge(KilnMatch *match)
{
    const KilnNode *outer = match->root, *inner = kiln_match_node(match, "inner");
    KilnValue *x = kiln_match_value(match, "x");
    int rank = x->type.rank;
    GUARD(rank_known, rank >= 0);
    int64_t axes[KILN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        axes[i] = axis_of(inner, rank, (int)axis_of(outer, rank, i));
    KilnAttrs_transpose attrs = { .perm = { (uint32_t)rank, axes } };
    KilnValue *merged = kiln_match_build(match, KILN_OP_transpose, &attrs, &x, 1);
    return merged && kiln_match_replace(match, merged);
}

static const KilnRule rules[] = {
    RULE("merge", E, "(transpose (transpose#inner ?x))", merge),
};

static const KilnRuleList my_transposes = RULE_LIST(rules, FORWARD);

static const KilnPassInfo passes[] = {
    { .id = "my-transposes",
      .level = KILN_LEVEL_GRAPH,
      .numerics = KILN_NUMERICS_E,
      .summary = "merge a transpose of a transpose",
      .rules = &my_transposes },
};
KILN_PASS_PLUGIN(passes)
