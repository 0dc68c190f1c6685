/* SPDX-License-Identifier: Apache-2.0 */
/* eliminate-concat-slice: what a concat joined and a slice or split takes apart again is read where
 * it came from.
 *
 *     a    b                          a    b                         a      b
 *      \  /                            \  /                          |      |
 *     concat            =>   a  b     concat                =>    a[1:2]    b
 *      /  \                            /   \
 *  [0:2]  [2:5]   (or split)        [1:2] [2:5]
 *
 *   slice-of-concat   a slice along the joined axis that lies within one operand: the operand where
 *                     it takes all of it, else a slice of the operand
 *   split-of-concat   every result of a split that is one operand is that operand
 *
 * requires nothing, preserves nothing; class E: elements are moved. The concat may have other
 * readers: they keep it, and no slice grows. Operands whose extent along the axis is open end the
 * search, for nothing tells where those behind them begin. A split along another axis needs no
 * guard: a result has the type of an operand only where the other operands are empty. */
#include "passes/query/movement.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

/* The operand of @concat that holds all of @part, and where in it the part lies; NULL where it
 * reaches into several. Empty parts are nobody's. */
static KilnValue *
operand_around(const KilnNode *concat, const KilnPart *part, KilnPart *within)
{
    int64_t at = 0;
    *within = *part;
    for (uint32_t i = 0; i < concat->n_operands && part->begin < part->end; i++) {
        KilnValue *operand = concat->operands[i].value;
        int64_t extent = operand->type.rank < 0 ? -1 : operand->type.dims[part->axis];
        if (extent < 0 || at > part->begin)
            return NULL;
        *within = (KilnPart){ operand, part->axis, part->begin - at, part->end - at };
        if (within->end <= extent)
            return operand;
        at += extent;
    }
    return NULL;
}

static bool
takes_all(const KilnPart *part)
{
    return part->begin == 0 && part->end == part->source->type.dims[part->axis];
}

static bool
slice_of_concat(KilnMatch *match)
{
    KilnNode *slice = match->root;
    const KilnNode *concat = kiln_match_node(match, "concat");
    KilnFunction *function = match->root->function;
    KilnPart part, within;
    if (!kiln_part_of(&slice->results[0], function, &part))
        return false;
    GUARD(same_axis, part.axis == kiln_concat_axis(concat));
    GUARD(one_operand, operand_around(concat, &part, &within));
    GUARD(not_rescaled, kiln_quant_same(&within.source->type, &slice->results[0].type));
    KilnValue *value = takes_all(&within) ? within.source
                                          : kiln_part_build(function, slice, &within,
                                                            &slice->results[0].type, match->error);
    return kiln_match_replace(match, value);
}

/* Result @i of @split as an operand of @concat; NULL where it is none, or where nothing reads it.
 */
static KilnValue *
whole_operand(const KilnNode *split, const KilnNode *concat, uint32_t i)
{
    KilnPart part, within;
    const KilnValue *result = &split->results[i];
    if (!result->n_uses || !kiln_part_of(result, split->function, &part) ||
        !operand_around(concat, &part, &within) || !takes_all(&within))
        return NULL;
    return kiln_type_equal(&result->type, &within.source->type) ? within.source : NULL;
}

static bool
split_of_concat(KilnMatch *match)
{
    KilnNode *split = match->root;
    const KilnNode *concat = kiln_match_node(match, "concat");
    bool any = false;
    for (uint32_t i = 0; i < split->n_results; i++) {
        KilnValue *operand = whole_operand(split, concat, i);
        any |= operand && kiln_match_replace_result(match, i, operand);
    }
    return any;
}

static const KilnRule rules[] = {
    RULE("slice-of-concat", E, "(slice (concat#concat ? ...) ...)", slice_of_concat),
    RULE("split-of-concat", E, "(split (concat#concat ? ...) ...)", split_of_concat),
};

RULE_PASS(eliminate_concat_slice, FORWARD);
