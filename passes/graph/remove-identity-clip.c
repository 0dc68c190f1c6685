/* SPDX-License-Identifier: Apache-2.0 */
/* remove-identity-clip: a clip to bounds that contain all that a quantized type represents changes
 * nothing.
 *
 *     x : a
 *       |      =>   x
 *     clip : a
 *
 * requires nothing, preserves nothing; class E: the type is the same, so that each stored value
 * stands for itself. Bounds are literal or absent; one that is NaN contains nothing. A clip to
 * another type rescales and stays. (Clips of reals beside quantized values are of
 * `optimize-quantize-clip`.) */
#include "passes/rule.h"

#include "passes/query/literal.h"
#include "passes/query/quant_range.h"

#include <math.h>

/* Infinite where absent; false where not known. */
static bool
read_bounds(const KilnNode *clip, double *low, double *high)
{
    const KilnValue *lower = kiln_node_operand(clip, 1), *upper = kiln_node_operand(clip, 2);
    *low = -INFINITY, *high = INFINITY;
    return (!lower || kiln_literal_uniform(lower, low)) &&
           (!upper || kiln_literal_uniform(upper, high));
}

static bool
drop(KilnMatch *match)
{
    const KilnType *type = &kiln_match_value(match, "q")->type;
    double low, high;
    GUARD(regular, kiln_quant_is_regular(type));
    GUARD(bounds_known, read_bounds(match->root, &low, &high));
    for (uint32_t i = 0; i < type->quant->n; i++) {
        KilnGrid grid = kiln_quant_grid(type, i);
        GUARD(contains_range, low <= (double)kiln_grid_dequantize(&grid, grid.lowest) &&
                                  (double)kiln_grid_dequantize(&grid, grid.highest) <= high);
    }
    return kiln_match_replace(match, kiln_match_value(match, "q"));
}

static const KilnRule rules[] = {
    RULE("clip-of-quantized", E, "(clip ?q:quantized ...)", drop),
};

RULE_PASS(remove_identity_clip, FORWARD);
