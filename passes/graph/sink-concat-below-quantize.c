/* SPDX-License-Identifier: Apache-2.0 */
/* sink-concat-below-quantize: stored integers are joined instead of the reals that they come from.
 *
 *     x   y                  x          y
 *      \ /                   |          |
 *     concat      =>     quantize   quantize
 *       |                     \      /
 *    quantize                  concat
 *
 * requires nothing, preserves nothing; class E: each element is quantized as before. The concat
 * then moves a quarter of the bytes; it must have no other reader, and the parameters must be one
 * pair for all elements. (The contrary, for narrowing conversions, is an option of
 * `sink-conversions`: do not run both.) */
#include "passes/rule.h"

#include "graph/op/concat.h"
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"

static bool
quantize_parts(KilnMatch *match)
{
    const KilnNode *concat = kiln_match_node(match, "concat");
    const KilnType *to = &match->root->results[0].type;
    GUARD(uniform, kiln_quant_is_uniform(to));
    g_autofree KilnValue **parts = g_new(KilnValue *, concat->n_operands);
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        KilnType type = kiln_quant_stored_as(&concat->operands[i].value->type, to);
        parts[i] = kiln_match_build_typed(match, KILN_OP_quantize_linear, NULL,
                                          &concat->operands[i].value, 1, &type);
        if (!parts[i])
            return false;
    }
    return kiln_match_replace(match, kiln_match_build_typed(match, KILN_OP_concat, concat->attrs,
                                                            parts, concat->n_operands, to));
}

static const KilnRule rules[] = {
    RULE("quantize-of-concat", E, "(quantize_linear (concat!#concat ? ...))", quantize_parts),
};

RULE_PASS(sink_concat_below_quantize, FORWARD);
