/* SPDX-License-Identifier: Apache-2.0 */
/* merge-concats: fewer and simpler concats.
 *
 *     a   b                                x                          a      b          a   b
 *      \ /                               /   \                        |      |           \ /
 *    concat   c       a  b  c        x[0:2]  x[2:5]                reshape reshape     concat
 *         \  /    =>   \ | /             \   /         =>  x           \    /     =>     |
 *        concat        concat            concat                        concat          reshape
 *
 *   nested-concat       a concat along the same axis that nothing else reads, of the same
 *                       quantization, is spliced in
 *   concat-of-parts     slices or results of a split that are, in order, all of their source
 *   concat-of-reshapes  the elements before and after the joined axis are the same ones before the
 *                       reshapes: their operands differ in one dim, and the extents on either side
 *                       of it have the products that those on either side of the axis have
 *   single-concat       a concat of one value
 *
 * requires nothing, preserves nothing; class E: elements are moved. Reshapes are views, so that
 * those with other readers may stay behind, but where all do nothing is gained: then the concat is
 * left as it is. */
#include "graph/op/concat.h"
#include "passes/query/facts.h"
#include "passes/query/movement.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

/* --- nested concats --- */

static KilnNode *
inner_concat(const KilnNode *outer, uint32_t i)
{
    KilnNode *inner = kiln_value_def_of(outer->operands[i].value, KILN_OP_concat);
    return inner && inner->function == outer->function ? inner : NULL;
}

/* May operand @i be replaced by what it joins? */
static bool
may_splice(KilnMatch *match, const KilnNode *outer, uint32_t i)
{
    const KilnNode *inner = inner_concat(outer, i);
    if (!inner)
        return false;
    GUARD(same_axis, kiln_concat_axis(inner) == kiln_concat_axis(outer));
    GUARD(rescaled_once, kiln_quant_same(&inner->results[0].type, &outer->results[0].type));
    GUARD(single_use, kiln_value_single_use(&inner->results[0]));
    return true;
}

static bool
splice(KilnMatch *match)
{
    KilnNode *outer = match->root;
    const KilnType *type = &outer->results[0].type;
    g_autoptr(GPtrArray) operands = g_ptr_array_new();
    GUARD(ranked, type->rank >= 0);
    GUARD(plain, !type->layout);
    bool any = false;
    for (uint32_t i = 0; i < outer->n_operands; i++) {
        bool spliced = may_splice(match, outer, i);
        const KilnNode *from = spliced ? inner_concat(outer, i) : outer;
        for (uint32_t k = spliced ? 0 : i; k < (spliced ? from->n_operands : i + 1); k++)
            g_ptr_array_add(operands, from->operands[k].value);
        any |= spliced;
    }
    if (!any)
        return false;
    KilnNodeSpec spec = { .op = KILN_OP_concat,
                          .name = outer->name,
                          .operands = (KilnValue *const *)operands->pdata,
                          .n_operands = operands->len,
                          .attrs = outer->attrs,
                          .types = type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

/* --- all parts of a value --- */

/* That they are all of it, and parts along the axis that is joined, shows in the types, which
 * kiln_match_replace() compares. */
static bool
join_parts(KilnMatch *match)
{
    const KilnNode *concat = match->root;
    KilnPart first, part;
    if (!kiln_part_of(concat->operands[0].value, concat->function, &first))
        return false;
    int64_t at = 0;
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        if (!kiln_part_of(concat->operands[i].value, concat->function, &part))
            return false;
        GUARD(one_source, part.source == first.source);
        GUARD(in_order, part.begin == at);
        at = part.end;
    }
    return kiln_match_replace(match, first.source);
}

/* --- reshapes --- */

static KilnType
dims_behind(const KilnType *type, int k)
{
    KilnType rest = kiln_type_scalar(type->dtype);
    rest.rank = type->rank - k - 1;
    for (int d = 0; d < rest.rank; d++) {
        rest.dims[d] = type->dims[k + 1 + d];
        rest.open[d] = type->open[k + 1 + d];
    }
    return rest;
}

/* As many elements in the dims before dim @k of @a as before dim @l of @b, and behind them. */
static bool
same_around(const KilnType *a, int k, const KilnType *b, int l)
{
    KilnType before = *a, others = *b;
    before.rank = k;
    others.rank = l;
    if (!kiln_type_same_elements(&before, &others))
        return false;
    KilnType behind = dims_behind(a, k), rest = dims_behind(b, l);
    return kiln_type_same_elements(&behind, &rest);
}

/* The dim of the values under the reshapes along which they can be joined instead; -1: none. */
static int
joined_dim(const KilnNode *concat, int axis)
{
    const KilnType *to = &concat->operands[0].value->type;
    const KilnType *from = &concat->operands[0].value->def->operands[0].value->type;
    for (int k = 0; k < from->rank; k++) {
        bool fits = same_around(from, k, to, axis);
        for (uint32_t i = 1; fits && i < concat->n_operands; i++) {
            const KilnType *other = &concat->operands[i].value->def->operands[0].value->type;
            fits = other->rank == from->rank;
            for (int d = 0; fits && d < from->rank; d++)
                fits = d == k || kiln_type_equal_dims(other, d, from, d);
        }
        if (fits)
            return k;
    }
    return -1;
}

/* Of the values under the reshapes, joined along dim @k and rescaled as @concat rescales. */
static KilnType
joined_type(const KilnNode *concat, int k)
{
    const KilnType *from = &concat->operands[0].value->def->operands[0].value->type;
    KilnType type = kiln_quant_stored_as(from, &concat->results[0].type);
    KilnDimTable *dims = concat->function->module->dims;
    const KilnDim *sum = kiln_type_dim(from, k, dims);
    for (uint32_t i = 1; i < concat->n_operands; i++) {
        const KilnType *other = &concat->operands[i].value->def->operands[0].value->type;
        sum = kiln_dim_add(dims, sum, kiln_type_dim(other, k, dims));
    }
    kiln_type_set_dim(&type, k, sum);
    return type;
}

static bool
plain_reshape(KilnMatch *match, const KilnNode *concat, uint32_t i)
{
    const KilnValue *value = concat->operands[i].value;
    const KilnType *from = &value->def->operands[0].value->type;
    GUARD(plain, !from->layout);
    return true;
}

static bool
sink_reshape(KilnMatch *match)
{
    KilnNode *concat = match->root;
    KilnFunction *function = match->root->function;
    bool gains = false;
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        const KilnValue *value = concat->operands[i].value;
        if (!value->def || value->def->function != function ||
            !kiln_op_only_reshapes(value->def->op))
            return false;
        if (!plain_reshape(match, concat, i))
            return false;
        gains |= kiln_only_reader(value, concat);
    }
    GUARD(gains, gains && concat->n_operands > 1);
    int k = joined_dim(concat, kiln_concat_axis(concat));
    GUARD(aligned, k >= 0);
    g_autofree KilnValue **operands = g_new(KilnValue *, concat->n_operands);
    for (uint32_t i = 0; i < concat->n_operands; i++)
        operands[i] = concat->operands[i].value->def->operands[0].value;
    KilnAttrs_concat attrs = { .axis = k };
    KilnType type = joined_type(concat, k);
    KilnValue *joined =
        kiln_match_build_typed(match, KILN_OP_concat, &attrs, operands, concat->n_operands, &type);
    KilnValue *shaped = joined ? kiln_reshape_build(function, concat, joined,
                                                    &concat->results[0].type, match->error)
                               : NULL;
    return kiln_match_replace(match, shaped);
}

/* --- one operand --- */

static const KilnRule rules[] = {
    RULE("nested-concat", E, "(concat ? ...)", splice),
    RULE("concat-of-parts", E, "(concat (slice|split ? ...) ...)", join_parts),
    RULE("concat-of-reshapes", E, "(concat (reshape|flatten|squeeze|unsqueeze ? ...) ...)",
         sink_reshape),
    RULE("single-concat", E, "(concat ?x)", kiln_match_replace_by_x),
};

RULE_PASS(merge_concats, FORWARD);
