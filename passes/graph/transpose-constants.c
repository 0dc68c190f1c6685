/* SPDX-License-Identifier: Apache-2.0 */
/* transpose-constants: transposes constants while compiling, also through the conversion behind
 * one.
 *
 *     const          const'           const  scale, zero point        const'  scale, zero point
 *       |      =>      |                |     /                         |     /
 *    transpose         |             quantize_linear · …      =>     quantize_linear' · …
 *       |                               |                               |
 *                                    transpose
 *
 * The conversion (quantize_linear, dequantize_linear, cast) must have no other reader; scales and
 * zero points along an axis follow it. Constants are never changed in place: others may read them.
 * requires nothing, preserves nothing; class E. Inference only: what training updates has to stay
 * what it is. */
#include "passes/permute/permute.h"
#include "passes/rule.h"

static bool
is_movable(const KilnValue *literal)
{
    return !literal->type.layout && kiln_tensor_is_readable(kiln_value_constant(literal)->tensor);
}

static bool
transpose_constant(KilnMatch *match)
{
    KilnNode *transpose = match->root;
    const KilnValue *literal = kiln_match_value(match, "literal");
    KilnPerm perm = kiln_perm_of(transpose);
    GUARD(inference, kiln_pass_mode(match->context) == KILN_MODE_INFER);
    GUARD(movable, is_movable(literal) && perm.rank >= 0);
    return kiln_match_replace(match, kiln_perm_literal(transpose, literal, &perm,
                                                       &transpose->results[0].type, match->error));
}

static bool
transpose_converted(KilnMatch *match)
{
    KilnNode *transpose = match->root, *conversion = kiln_match_node(match, "conversion");
    const KilnValue *literal = kiln_match_value(match, "literal");
    KilnPerm perm = kiln_perm_of(transpose),
             from[] = { KILN_PERM_NONE, KILN_PERM_NONE, KILN_PERM_NONE };
    GUARD(inference, kiln_pass_mode(match->context) == KILN_MODE_INFER);
    GUARD(movable, is_movable(literal) && perm.rank >= 0);
    g_autoptr(KilnArena) arena = kiln_arena_new();
    KilnPermuted plan = { .node = conversion,
                          .arena = arena,
                          .context = match->context,
                          .rule = match->rule,
                          .from = from,
                          .want = kiln_perm_inverse(&perm),
                          .inverse = true };
    if (!kiln_permute_plan(&plan))
        return false;
    KilnType type = kiln_perm_type_after(arena, &literal->type, &perm);
    KilnValue *moved[3] = { NULL };
    if (plan.operands[0].kind == KILN_PERMUTED_INVERSE) { /* else the plan sees to it */
        moved[0] = kiln_perm_literal(conversion, literal, &perm, &type, match->error);
        if (!moved[0])
            return false;
    }
    KilnNode *built = kiln_permute_build(&plan, moved, match->error);
    return built && kiln_match_replace(match, &built->results[0]);
}

static const KilnRule rules[] = {
    RULE("transpose-constant", E, "(transpose $literal)", transpose_constant),
    RULE("transpose-converted-constant", E,
         "(transpose (quantize_linear|dequantize_linear|cast#conversion! $literal ...))",
         transpose_converted),
};

RULE_PASS(transpose_constants, FORWARD);
