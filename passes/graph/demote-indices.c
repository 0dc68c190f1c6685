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
replace_indices(KilnMatch *match, KilnValue *indices)
{
    KilnNode *root = match->root;
    KilnValue *operands[] = { root->operands[0].value, indices, kiln_node_operand(root, 2) };
    KilnNodeSpec spec = { .op = root->op,
                          .operands = operands,
                          .n_operands = root->n_operands,
                          .attrs = root->attrs,
                          .types = &root->results[0].type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static bool
read_uncast(KilnMatch *match)
{
    return replace_indices(match, kiln_match_value(match, "indices"));
}

static bool
narrow_literal(KilnMatch *match)
{
    const KilnValue *wide = kiln_match_value(match, "indices");
    KilnType type = kiln_type_make(KILN_DTYPE_i32, wide->type.rank, wide->type.dims);
    GUARD(unshared, kiln_value_single_use(wide));
    g_autofree double *numbers = kiln_literal_read(wide, match->error);
    for (int64_t i = 0, n = numbers ? kiln_type_elements(&type) : 0; i < n; i++)
        GUARD(fits, numbers[i] >= G_MININT32 && numbers[i] <= G_MAXINT32);
    KilnValue *narrow = numbers ? kiln_literal_build(match->root->function, match->root, "indices",
                                                     &type, numbers, match->error)
                                : NULL;
    return narrow && replace_indices(match, narrow);
}

// clang-format off
static const KilnRule rules[] = {
    RULE("indices-from-i32", E, "(gather|gather_elements|scatter_elements ? (cast ?indices:i32):i64 ...)", read_uncast),
    RULE("literal-indices", E, "(gather|gather_elements|scatter_elements ? $indices:i64 ...)", narrow_literal),
};
// clang-format on

RULE_PASS(demote_indices, FORWARD);
