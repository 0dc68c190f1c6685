/* SPDX-License-Identifier: Apache-2.0 */
/* demote-indices: indices that are known to fit are read as i32.
 *
 *         i: i32
 *           |
 *     x  cast to i64         x  i: i32         x  [0, 7, -1]: i64        x  [0, 7, -1]: i32
 *      \   /           =>     \ /               \ /               =>      \ /
 *      gather               gather             gather                   gather
 *
 * for gather, gather_elements and scatter_elements. requires nothing, preserves nothing; class E:
 * what came from i32 fits in it, and literals are looked at. Other i64 - inputs, sums - may be
 * anything, and stay. A literal that others read as i64 stays too: there would be two of it. */
#include "passes/query/literal.h"
#include "passes/rule.h"

static bool
replace_indices(KilnMatch *match, KilnPassContext *context, const char *rule, KilnValue *indices,
                GError **error)
{
    KilnNode *root = kiln_match_root(match);
    KilnValue *operands[] = { root->operands[0].value, indices, kiln_node_operand(root, 2) };
    KilnNodeSpec spec = { .op = root->op,
                          .operands = operands,
                          .n_operands = root->n_operands,
                          .attrs = root->attrs,
                          .types = &root->results[0].type,
                          .before = root };
    KilnNode *node = kiln_node_new(kiln_match_function(match), &spec, error);
    return node && kiln_match_replace(match, context, rule, &node->results[0]);
}

static bool
read_uncast(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    return replace_indices(match, context, rule, kiln_match_value(match, "indices"), error);
}

static bool
narrow_literal(KilnMatch *match, KilnPassContext *context, const char *rule, GError **error)
{
    const KilnValue *wide = kiln_match_value(match, "indices");
    KilnType type = kiln_type_make(KILN_DTYPE_i32, wide->type.rank, wide->type.dims);
    GUARD(unshared, kiln_value_single_use(wide));
    g_autofree double *numbers = kiln_literal_read(wide, error);
    for (int64_t i = 0, n = numbers ? kiln_type_elements(&type) : 0; i < n; i++)
        GUARD(fits, numbers[i] >= G_MININT32 && numbers[i] <= G_MAXINT32);
    KilnValue *narrow = numbers
                            ? kiln_literal_build(kiln_match_function(match), kiln_match_root(match),
                                                 "indices", &type, numbers, error)
                            : NULL;
    return narrow && replace_indices(match, context, rule, narrow, error);
}

// clang-format off
static const KilnRule rules[] = {
    RULE("indices-from-i32", E, "(gather|gather_elements|scatter_elements ? (cast ?indices:i32):i64 ...)", read_uncast),
    RULE("literal-indices", E, "(gather|gather_elements|scatter_elements ? $indices:i64 ...)", narrow_literal),
};
// clang-format on

const KilnRule *
kiln_pass_rules_demote_indices(uint32_t *n)
{
    *n = G_N_ELEMENTS(rules);
    return rules;
}

gboolean
kiln_pass_demote_indices(KilnFunction *function, KilnPassContext *context, bool *changed,
                         GError **error)
{
    return kiln_rules_run(rules, G_N_ELEMENTS(rules), function, KILN_SWEEP_FORWARD, context,
                          changed, error);
}
