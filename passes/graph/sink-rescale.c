/* SPDX-License-Identifier: Apache-2.0 */
/* sink-rescale: a rescale goes below what moves its result, or chooses among its elements.
 *
 *      x : a                 x : a             reshape, slice, transpose, flatten, squeeze,
 *      |                     |                 unsqueeze, depth_to_space, space_to_depth;
 *   rescale : b    =>      move : a            max_pool, global_max_pool
 *      |                     |
 *    move : b             rescale : b
 *
 * There it meets other rescales, and a slice or a pool has left it fewer elements. An average pool
 * takes the rescale's place instead, for it rounds to any type of result:
 *
 *      x : a                 x : a
 *      |                     |
 *   rescale : b    =>     average_pool : c     global_average_pool
 *      |                     |
 *  average_pool : c
 *
 * requires nothing, preserves nothing. Class E below what moves: each element is rescaled as
 * before; and below a maximum, for to round and to saturate is monotone - as long as every window
 * has data, because what stands for an empty one differs from type to type. Class QS for averages,
 * and only under the flag quant-lossy, because the rounding of the rescale is left out: the rescale
 * must not saturate, and its steps must not be wider than twice those of the result.
 * The rescale has no other reader and reads no other rescale, with which it would be merged first
 * (`optimize-quantization`): so each goes a way of its own, and all ways together are as long as
 * the graph. Types have one scale and zero point for all elements.
 *
 * `when: always` is what the Glow document describes; with `pays` a rescale only goes below what
 * leaves it fewer elements. sink-transposes and sink-reshapes move transposes and reshapes below
 * rescales: who iterates them together with this pass asks for `pays`. */
#include "passes/rule.h"

#include "graph/op/pool.h"
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"

#include <string.h>

#define OPTIONS(OPTION, CHOICE) CHOICE(when, "always", "always|pays")
PASS_OPTIONS(sink_rescale, OPTIONS);

/* The root's op on the rescale's operand, with a result of @type. */
static KilnValue *
build_on_operand(KilnMatch *match, const KilnType *type)
{
    const KilnNode *root = match->root;
    g_autofree KilnValue **operands = g_new(KilnValue *, root->n_operands);
    for (uint32_t i = 0; i < root->n_operands; i++)
        operands[i] = root->operands[i].value;
    operands[0] = kiln_match_value(match, "x");
    return kiln_match_build_typed(match, root->op, root->attrs, operands, root->n_operands, type);
}

static bool
sink(KilnMatch *match)
{
    const KilnType *from = &kiln_match_value(match, "x")->type;
    const KilnType *to = &match->root->results[0].type;
    GUARD(uniform, kiln_quant_is_uniform(from) && kiln_quant_is_uniform(to));
    GUARD(merged_first,
          !kiln_value_def_of(kiln_match_value(match, "x"), KILN_OP_rescale_quantized));
    const Options *options = kiln_pass_options(match->context);
    bool always = strcmp(options->when, "always") == 0;
    int64_t n = kiln_type_likely_elements(to);
    GUARD(less_to_do, always || (n >= 0 && n < kiln_type_likely_elements(from)));
    KilnType moved_type = kiln_quant_stored_as(to, from);
    KilnValue *moved = build_on_operand(match, &moved_type);
    if (!moved)
        return false;
    return kiln_match_replace(
        match, kiln_match_build_typed(match, KILN_OP_rescale_quantized, NULL, &moved, 1, to));
}

/* --- pools --- */

static bool
pads(const KilnAttrs_max_pool *attrs)
{
    return g_str_has_prefix(attrs->auto_pad, "SAME") || !kiln_ints_all(attrs->pads, 0);
}

/* Every window covers an element of the data. */
static bool
windows_have_data(const KilnNode *pool)
{
    const KilnAttrs_max_pool *attrs = kiln_attrs(pool, max_pool);
    const KilnType *data = &pool->operands[0].value->type;
    if (attrs->ceil_mode || !kiln_ints_all(attrs->dilations, 1))
        return false;
    for (uint32_t i = 0; i < attrs->pads.n; i++) {
        if (attrs->pads.v[i] >= attrs->kernel_shape.v[i % attrs->kernel_shape.n])
            return false;
    }
    for (int d = 2; d < data->rank && pads(attrs); d++) {
        int64_t least, most;
        kiln_type_dim_range(data, d, &least, &most);
        if (least < 1)
            return false;
    }
    return data->rank >= 0 || !pads(attrs);
}

static bool
sink_below_max(KilnMatch *match)
{
    const KilnNode *pool = match->root;
    const KilnType *rescaled = &pool->operands[0].value->type;
    GUARD(no_indices, pool->n_results == 1);
    GUARD(chooses, kiln_quant_same(rescaled, &pool->results[0].type));
    GUARD(windows_have_data, pool->op == KILN_OP_global_max_pool || windows_have_data(pool));
    return sink(match);
}

static bool
average_directly(KilnMatch *match)
{
    const KilnNode *pool = match->root;
    const KilnType *from = &kiln_match_value(match, "x")->type, *to = &pool->results[0].type;
    const KilnType *middle = &pool->operands[0].value->type;
    GUARD(uniform, kiln_quant_is_uniform(from) && kiln_quant_is_uniform(middle));
    GUARD(range_included, kiln_quant_holds(middle, from));
    GUARD(steps_fit, kiln_quant_is_uniform(to) && kiln_quant_steps_fit(middle, to));
    return kiln_match_replace(match, build_on_operand(match, to));
}

static const KilnRule rules[] = {
    RULE("rescale-below-movement", E,
         "(reshape|slice|transpose|flatten|squeeze|unsqueeze|depth_to_space|space_to_depth "
         "(rescale_quantized! ?x) ...)",
         sink),
    RULE("rescale-below-max-pool", E, "(max_pool|global_max_pool (rescale_quantized! ?x))",
         sink_below_max),
    FLAGGED_RULE("rescale-into-average-pool", QS, KILN_FLAG(quant_lossy),
                 "(average_pool|global_average_pool (rescale_quantized! ?x))", average_directly),
};

RULE_PASS(sink_rescale, FORWARD);
