/* SPDX-License-Identifier: Apache-2.0 */
/* remove-max-splat: a maximum with a constant that nothing is less than changes nothing, nor does a
 * minimum with one that nothing exceeds.
 *
 *     x : a   const c : b          x : a
 *         \     /           =>       |       c <= the least that a represents (max)
 *         max : a                            c >= the greatest (min)
 *
 * requires nothing, preserves nothing; class E: x keeps its type, so that each of its stored values
 * stands for itself. All elements of c are equal. Either operand may be the constant. (A quantized
 * relu of what cannot be negative goes by `remove-identity-relu`.) */
#include "passes/rule.h"

#include "graph/base/number.h"
#include "graph/op/bounds.h"
#include "passes/query/quant_range.h"

/* The real that all elements of a literal stand for. */
static bool
uniform_real(const KilnValue *literal, double *real)
{
    const KilnType *type = &literal->type;
    uint8_t element[8];
    if (!kiln_quant_is_uniform(type) ||
        !kiln_tensor_is_splat(kiln_value_constant(literal)->tensor, 65536, element))
        return false;
    KilnGrid grid = kiln_quant_grid(type, 0);
    *real = kiln_grid_real(&grid, kiln_element_as_i64(type->dtype, element, 0));
    return true;
}

static bool
drop(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    double splat = 0;
    if (!kiln_quant_is_regular(&x->type))
        return false; /* its range is not known */
    GUARD(splat, uniform_real(kiln_match_value(match, "c"), &splat));
    bool max = match->root->op == KILN_OP_max;
    for (uint32_t i = 0; i < x->type.quant->n; i++) {
        KilnGrid grid = kiln_quant_grid(&x->type, i);
        double end = kiln_grid_real(&grid, max ? grid.lowest : grid.highest);
        GUARD(out_of_range, max ? splat <= end : splat >= end);
    }
    return kiln_match_replace(match, x);
}

static const KilnRule rules[] = {
    RULE("max-of-splat", E, "(max~ ?x:quantized $c)", drop),
    RULE("min-of-splat", E, "(min~ ?x:quantized $c)", drop),
};

RULE_PASS(remove_max_splat, FORWARD);
