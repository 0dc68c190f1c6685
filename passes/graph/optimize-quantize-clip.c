/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-quantize-clip: clips of reals that quantization does anyway, or could do.
 *
 *     x            x : a                        x                        x : a
 *     |              |                          |                          |
 *    clip        dequantize                    clip                    dequantize
 *     |              |                          |                          |
 *  quantize : a     clip                     quantize : a                 clip
 *     =>             =>                         =>                         =>
 *  quantize(x)   dequantize(x)          rescale(quantize(x) : n) : a   dequantize(rescale(x) : n)
 *
 * requires nothing, preserves nothing. The first two are class E: the bounds contain all that a
 * represents, so that clamping to a does what the clip did, NaN included.
 *
 * The others choose a type n whose range is that of the clip: class QS, under the flags quant-lossy
 * and quant-param-changes. n has no wider steps than a, and its ends are those of the clip up to
 * half a step. What reads or makes the value may then take up the rescale (`combine-rescale-up`,
 * `combine-rescale-down`), and nothing is left of the clip. The clip, or what it clips, has no
 * other reader. Bounds are literal or absent, and 0 lies between them, for every type represents 0.
 */
#include "passes/rule.h"

#include "graph/op/quantize.h"
#include "passes/query/literal.h"
#include "passes/query/quant_range.h"

#include <math.h>

typedef struct {
    double low, high;
} Bounds;

/* Infinite where absent; false where not known. */
static bool
read_bounds(const KilnNode *clip, Bounds *bounds)
{
    const KilnValue *low = kiln_node_operand(clip, 1), *high = kiln_node_operand(clip, 2);
    *bounds = (Bounds){ -INFINITY, INFINITY };
    return (!low || kiln_literal_uniform(low, &bounds->low)) &&
           (!high || kiln_literal_uniform(high, &bounds->high));
}

/* Both bounds are stored as the ends of every grid: what they clip, the grid clips. */
static bool
cover_ends(Bounds bounds, const KilnType *type)
{
    bool cover = bounds.low <= bounds.high;
    for (uint32_t i = 0; i < type->quant->n; i++) {
        KilnGrid grid = kiln_quant_grid(type, i);
        cover &= kiln_grid_quantize(&grid, (float)bounds.low) == grid.lowest &&
                 kiln_grid_quantize(&grid, (float)bounds.high) == grid.highest;
    }
    return cover;
}

static bool
drop_before_quantize(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &match->root->results[0].type;
    Bounds bounds;
    GUARD(bounds_known, read_bounds(kiln_match_node(match, "clip"), &bounds));
    GUARD(regular, kiln_quant_is_regular(type));
    GUARD(covers_range, cover_ends(bounds, type));
    return kiln_match_replace(
        match, kiln_match_build_typed(match, KILN_OP_quantize_linear, NULL, &x, 1, type));
}

static bool
drop_after_dequantize(KilnMatch *match)
{
    const KilnNode *clip = match->root;
    const KilnType *type = &kiln_match_value(match, "x")->type;
    Bounds bounds;
    GUARD(bounds_known, read_bounds(clip, &bounds));
    GUARD(regular, kiln_quant_is_regular(type));
    for (uint32_t i = 0; i < type->quant->n; i++) {
        KilnGrid grid = kiln_quant_grid(type, i);
        GUARD(covers_range, bounds.low <= (double)kiln_grid_dequantize(&grid, grid.lowest) &&
                                (double)kiln_grid_dequantize(&grid, grid.highest) <= bounds.high);
    }
    return kiln_match_replace(match, clip->operands[0].value);
}

/* --- narrower types --- */

typedef struct {
    float scale;
    int32_t zero_point;
    KilnQuant quant;
    KilnType type;
} Narrowed;

/* @from with the range of the clip, as far as it has it; false where that would be no narrower, or
 * without 0. */
static bool
narrow(const KilnNode *clip, const KilnType *from, Narrowed *out)
{
    Bounds bounds;
    if (!read_bounds(clip, &bounds) || !(bounds.low <= bounds.high) || !kiln_quant_is_uniform(from))
        return false;
    KilnGrid grid = kiln_quant_grid(from, 0);
    double low = MAX(bounds.low, kiln_grid_real(&grid, grid.lowest));
    double high = MIN(bounds.high, kiln_grid_real(&grid, grid.highest));
    if (!(low <= 0 && high >= 0 && low < high))
        return false;
    out->scale = (float)((high - low) / (double)(grid.highest - grid.lowest));
    double zero = rint((double)grid.lowest - low / (double)out->scale);
    out->zero_point = (int32_t)CLAMP(zero, (double)grid.lowest, (double)grid.highest);
    out->quant = (KilnQuant){ -1, 1, &out->scale, &out->zero_point };
    out->type = *from;
    out->type.quant = &out->quant;
    return out->scale < grid.scale && kiln_quant_is_uniform(&out->type);
}

/* The first of @ops makes @middle of @x, the second @last of that. */
static KilnValue *
convert_twice(KilnMatch *match, KilnValue *x, const KilnType *middle, const KilnType *last,
              const KilnOp ops[2])
{
    KilnValue *first = kiln_match_build_typed(match, ops[0], NULL, &x, 1, middle);
    return first ? kiln_match_build_typed(match, ops[1], NULL, &first, 1, last) : NULL;
}

static bool
narrow_quantize(KilnMatch *match)
{
    static const KilnOp ops[] = { KILN_OP_quantize_linear, KILN_OP_rescale_quantized };
    const KilnType *type = &match->root->results[0].type;
    Narrowed narrowed;
    GUARD(narrower, narrow(kiln_match_node(match, "clip"), type, &narrowed));
    return kiln_match_replace(
        match, convert_twice(match, kiln_match_value(match, "x"), &narrowed.type, type, ops));
}

static bool
narrow_dequantize(KilnMatch *match)
{
    static const KilnOp ops[] = { KILN_OP_rescale_quantized, KILN_OP_dequantize_linear };
    const KilnNode *clip = match->root;
    KilnValue *x = kiln_match_value(match, "x");
    Narrowed narrowed;
    GUARD(narrower, narrow(clip, &x->type, &narrowed));
    return kiln_match_replace(match,
                              convert_twice(match, x, &narrowed.type, &clip->results[0].type, ops));
}

/* A step is left out, and another takes its place. */
#define CHANGES (KILN_FLAG(quant_lossy) | KILN_FLAG(quant_param_changes))

static const KilnRule rules[] = {
    RULE("quantize-of-clip", E, "(quantize_linear (clip#clip ?x:float ...))", drop_before_quantize),
    RULE("clip-of-dequantize", E, "(clip (dequantize_linear ?x:quantized):f32 ...)",
         drop_after_dequantize),
    FLAGGED_RULE("narrow-quantize", QS, CHANGES, "(quantize_linear (clip!#clip ?x:float ...))",
                 narrow_quantize),
    FLAGGED_RULE("narrow-dequantize", QS, CHANGES,
                 "(clip (dequantize_linear! ?x:quantized):f32 ...)", narrow_dequantize),
};

RULE_PASS(optimize_quantize_clip, FORWARD);
