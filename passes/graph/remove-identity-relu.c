/* SPDX-License-Identifier: Apache-2.0 */
/* remove-identity-relu: a relu of what cannot be negative changes nothing.
 *
 *     x : a                   x : a                 the zero point of a is the lowest stored
 *       |      =>   x           |        =>  dequantize(x)    number: all represented reals are
 *     relu : a              dequantize                        0 or more
 *                               |
 *                             relu
 *
 * requires nothing, preserves nothing; class E: the type is the same, so that each stored value
 * stands for itself; what a dequantize gives is no -0 and no NaN. A relu to another type rescales
 * and stays. */
#include "passes/rule.h"

#include "passes/query/quant_range.h"

static bool
drop(KilnMatch *match)
{
    const KilnType *type = &kiln_match_value(match, "q")->type;
    if (!kiln_quant_is_regular(type))
        return false; /* its range is not known */
    for (uint32_t i = 0; i < type->quant->n; i++) {
        KilnGrid grid = kiln_quant_grid(type, i);
        GUARD(never_negative, kiln_grid_real(&grid, grid.lowest) >= 0);
    }
    return kiln_match_replace(match, match->root->operands[0].value);
}

static const KilnRule rules[] = {
    RULE("relu-of-quantized", E, "(relu ?q:quantized)", drop),
    RULE("relu-of-dequantized", E, "(relu (dequantize_linear ?q:quantized))", drop),
};

RULE_PASS(remove_identity_relu, FORWARD);
