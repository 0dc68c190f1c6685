/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-splat: what moves or clips a constant whose elements are all equal is such a constant
 * itself, which needs no storage.
 *
 *     splat 2 [4,4]                       splat 1   splat 1               shape
 *        |           =>  splat 2 [2,4]        \     /      => splat 1       |           => splat 0
 *    slice 0:2                                concat                 constant_of_shape
 *
 *   moved-splat        slice, split, reshape, flatten, squeeze, unsqueeze, transpose, expand, tile,
 *                      depth_to_space, space_to_depth, identity
 *   gathered-splat     gather, where the indices are known to be in range
 *   joined-splats      a concat of splats of the same bits
 *   padded-splat       pad by the same bits, or by what is there already
 *   clipped-splat      clip by bounds that are literal
 *   shaped-splat       constant_of_shape of a shape that is known
 *
 * requires nothing, preserves nothing; class E: every element is one of those that were there, bits
 * and all. A clip between zeros of different signs, or with a NaN, is left alone: which of them
 * wins is the kernel's business. */
#include "graph/base/number.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "passes/query/literal.h"
#include "passes/query/movement.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

#include <math.h>
#include <string.h>

enum {
    LOOK_FOR_SPLAT = 65536 /* elements of stored constants */
};

static bool
is_splat(const KilnValue *value, uint8_t element[8])
{
    const KilnConstant *constant = kiln_value_constant(value);
    memset(element, 0, 8);
    return constant && kiln_type_elements(&constant->type) > 0 &&
           kiln_tensor_is_splat(constant->tensor, LOOK_FOR_SPLAT, element);
}

/* The root's results as splats of @element. */
static bool
replace_by_splats(KilnMatch *match, const uint8_t element[8])
{
    KilnNode *root = match->root;
    bool any = false;
    for (uint32_t i = 0; i < root->n_results; i++) {
        const KilnValue *result = &root->results[i];
        if (!result->n_uses)
            continue;
        KilnType type = kiln_type_make(result->type.dtype, result->type.rank, result->type.dims);
        KilnTensor *tensor = kiln_tensor_new_splat_bits(&type, element);
        type.quant = result->type.quant;
        KilnValue *splat =
            kiln_moved_constant(match->root->function, root, result->name, tensor, &type);
        any |= kiln_match_replace_result(match, i, splat);
    }
    return any;
}

static bool
static_results(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (kiln_type_bytes(&node->results[i].type) < 0)
            return false;
    }
    return true;
}

static bool
move_splat(KilnMatch *match)
{
    uint8_t element[8];
    GUARD(splat, is_splat(kiln_match_value(match, "c"), element));
    GUARD(static_shape, static_results(match->root));
    return replace_by_splats(match, element);
}

static bool
gather_splat(KilnMatch *match)
{
    const KilnNode *gather = match->root;
    const KilnType *x = &gather->operands[0].value->type;
    const KilnKnown *indices = gather->operands[1].value->known;
    uint8_t element[8];
    GUARD(splat, is_splat(gather->operands[0].value, element));
    GUARD(indices_known, indices != NULL);
    int64_t extent = x->dims[kiln_type_axis(x, kiln_attrs(gather, gather)->axis)];
    for (int64_t i = 0; i < indices->n; i++)
        GUARD(in_range, indices->v[i] < extent && indices->v[i] >= -extent);
    return replace_by_splats(match, element);
}

static bool
join_splats(KilnMatch *match)
{
    const KilnNode *concat = match->root;
    uint8_t element[8], other[8];
    GUARD(splat, is_splat(concat->operands[0].value, element));
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        const KilnType *type = &concat->operands[i].value->type; /* else the concat rescales */
        GUARD(same_quantization, kiln_quant_same(type, &concat->results[0].type));
    }
    for (uint32_t i = 1; i < concat->n_operands; i++) {
        bool same = is_splat(concat->operands[i].value, other) &&
                    memcmp(element, other, sizeof element) == 0;
        GUARD(same_bits, same);
    }
    return replace_by_splats(match, element);
}

/* What a pad puts around: where no value is stated zero, or what stands for it. */
static bool
pads_with(const KilnNode *pad, const uint8_t element[8])
{
    const KilnValue *value = kiln_node_operand(pad, 2);
    const KilnType *type = &pad->results[0].type;
    uint8_t around[8] = { 0 };
    if (value && !is_splat(value, around))
        return false;
    if (!value && type->quant)
        kiln_element_store_f64(type->dtype, around, 0, type->quant->zero_points[0]);
    return memcmp(around, element, sizeof around) == 0;
}

static bool
pad_splat(KilnMatch *match)
{
    const KilnNode *pad = match->root;
    const char *mode = kiln_attrs(pad, pad)->mode;
    uint8_t element[8];
    GUARD(splat, is_splat(pad->operands[0].value, element));
    GUARD(static_shape, static_results(pad));
    GUARD(same_bits, strcmp(mode, "constant") != 0 || pads_with(pad, element));
    return replace_by_splats(match, element);
}

/* --- clip --- */

/* Zeros of different signs compare equal but are not. */
static bool
comparable(double a, double b)
{
    return !isnan(a) && !isnan(b) && (a != b || signbit(a) == signbit(b));
}

/* The operand whose element the clip gives. */
static bool
clipped(KilnMatch *match, const KilnNode *clip, const KilnValue **chosen)
{
    double number, bound;
    *chosen = clip->operands[0].value;
    GUARD(splat, kiln_literal_uniform(*chosen, &number));
    for (uint32_t i = 1; i <= 2; i++) {
        const KilnValue *limit = kiln_node_operand(clip, i);
        if (!limit)
            continue;
        GUARD(bounds_literal, kiln_literal_uniform(limit, &bound));
        GUARD(comparable, comparable(number, bound));
        if (i == 1 ? bound > number : bound < number) {
            *chosen = limit;
            number = bound;
        }
    }
    return true;
}

static bool
clip_splat(KilnMatch *match)
{
    const KilnValue *chosen;
    uint8_t element[8];
    if (!clipped(match, match->root, &chosen) || !is_splat(chosen, element))
        return false;
    return replace_by_splats(match, element);
}

static bool
shape_splat(KilnMatch *match)
{
    const KilnConstant *value = kiln_attrs(match->root, constant_of_shape)->value;
    uint8_t element[8] = { 0 };
    GUARD(static_shape, static_results(match->root));
    if (value && !kiln_tensor_is_splat(value->tensor, 1, element))
        return false;
    return replace_by_splats(match, element);
}

static const KilnRule rules[] = {
    RULE("moved-splat", E,
         "(identity|reshape|flatten|squeeze|unsqueeze|transpose|slice|split|expand|tile|"
         "depth_to_space|space_to_depth $c ...)",
         move_splat),
    RULE("gathered-splat", E, "(gather $ ?)", gather_splat),
    RULE("joined-splats", E, "(concat $ ...)", join_splats),
    RULE("padded-splat", E, "(pad $ ? ...)", pad_splat),
    RULE("clipped-splat", E, "(clip $ ...)", clip_splat),
    RULE("shaped-splat", E, "(constant_of_shape ?)", shape_splat),
};

RULE_PASS(optimize_splat, FORWARD);
