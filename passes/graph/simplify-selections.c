/* SPDX-License-Identifier: Apache-2.0 */
/* simplify-selections: selections and counts that less work gives.
 *
 *        x                   x                      x                        x
 *        |                  / \                     |                        |
 *     top_k 1      =>      /  arg_max            top_k 9         =>       top_k 4
 *      /   \              |   /    \             /      \                 /     \
 *     v     i           gather      i         slice 0:4  slice 0:4       v       i
 *                         |                      |          |
 *                         v                      v          i
 *
 *        x                                     1 [B,N]
 *        |                                        |                1 … N
 *     hardmax     =>   arg_max x               cum_sum      =>       |
 *        |                                        |                expand [B,N]
 *     arg_max
 *
 * requires nothing, preserves nothing; class E. top_k, arg_max and hardmax take the first of equal
 * elements and NaN as the largest; top_k of the least takes NaN last, and arg_min takes it first.
 * An arg_max of softmax stays: two different elements may have equal probabilities, of which
 * arg_max takes the first. Counts are whole numbers that their type has. */
#include "graph/op/cast.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"
#include "passes/query/affine.h"
#include "passes/query/extents.h"
#include "passes/query/literal.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

/* --- top_k --- */

/* k, where it is a known number. */
static int64_t
k_of(const KilnNode *top_k)
{
    const KilnValue *k = top_k->operands[1].value;
    return k->known && k->known->n == 1 && !k->extents ? k->known->v[0] : -1;
}

static bool
take_one(KilnMatch *match)
{
    KilnNode *node = match->root;
    const KilnAttrs_top_k *attrs = kiln_attrs(node, top_k);
    KilnValue *x = node->operands[0].value;
    const int axis = x->type.rank > 0 ? kiln_type_axis(&x->type, attrs->axis) : -1;
    int64_t least, most;
    if (axis < 0 || k_of(node) != 1)
        return false;
    kiln_type_dim_range(&x->type, axis, &least, &most);
    GUARD(some_element, least >= 1);
    GUARD(nan_first, attrs->largest || !kiln_dtype_is_float(x->type.dtype));
    /* Both operators have these attributes. */
    const KilnAttrs_arg_max best = { .axis = axis, .keepdims = true };
    const KilnAttrs_gather_elements along = { .axis = axis };
    KilnValue *at =
        kiln_match_build(match, attrs->largest ? KILN_OP_arg_max : KILN_OP_arg_min, &best, &x, 1);
    KilnValue *operands[] = { x, at };
    KilnValue *value =
        at ? kiln_match_build(match, KILN_OP_gather_elements, &along, operands, 2) : NULL;
    return value && kiln_match_replace_result(match, 1, at) && kiln_match_replace(match, value);
}

/* The first elements along the axis of @top_k that @use takes; 0: something else. */
static int64_t
n_taken(const KilnNode *top_k, int axis, const KilnUse *use)
{
    KilnPart part;
    const bool taken = use->user->n_results == 1 && use->index == 0 &&
                       kiln_part_of(&use->user->results[0], top_k->function, &part) &&
                       part.axis == axis && part.begin == 0;
    return taken ? part.end : 0;
}

/* As many first elements as all readers of @top_k take, and have the type of; 0: they differ. */
static int64_t
n_taken_by_all(KilnNode *top_k, int axis, const KilnType types[2])
{
    int64_t n = -1;
    for (uint32_t r = 0; r < top_k->n_results; r++) {
        KilnType type = types[r];
        kiln_foreach_use (use, &top_k->results[r]) {
            const int64_t taken = n_taken(top_k, axis, use);
            if (n >= 0 && taken != n)
                return 0;
            n = type.dims[axis] = taken;
            if (!kiln_type_equal(&type, &use->user->results[0].type))
                return 0;
        }
    }
    return n;
}

static bool
take_fewer(KilnMatch *match)
{
    KilnNode *top_k = match->root;
    const KilnAttrs_top_k *attrs = kiln_attrs(top_k, top_k);
    const int64_t k = k_of(top_k);
    KilnType types[] = { top_k->results[0].type, top_k->results[1].type };
    const int axis = types[0].rank > 0 ? kiln_type_axis(&types[0], attrs->axis) : -1;
    if (axis < 0 || k < 0)
        return false;
    const int64_t n = n_taken_by_all(top_k, axis, types);
    GUARD(sorted, attrs->sorted);
    GUARD(sliced_alike, n > 0);
    GUARD(fewer, n < k);
    types[0].dims[axis] = types[1].dims[axis] = n;
    KilnValue *operands[] = { top_k->operands[0].value,
                              kiln_build_ints(top_k->function, top_k, &n, 1) };
    KilnNodeSpec spec = { .op = KILN_OP_top_k,
                          .name = top_k->name,
                          .operands = operands,
                          .n_operands = 2,
                          .n_results = 2,
                          .attrs = attrs,
                          .types = types };
    KilnValue *values = kiln_match_build_node(match, &spec);
    for (uint32_t r = 0; values && r < top_k->n_results; r++) {
        kiln_foreach_use (use, &top_k->results[r])
            kiln_match_replace_other(match, &use->user->results[0], &values[r]);
    }
    return values != NULL;
}

/* --- hardmax --- */

static bool
skip_hardmax(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnAttrs_arg_max *attrs = kiln_attrs(match->root, arg_max);
    const int64_t hot = kiln_attrs(kiln_match_node(match, "hot"), hardmax)->axis;
    if (x->type.rank < 1)
        return false;
    GUARD(one_axis, kiln_type_axis(&x->type, hot) == kiln_type_axis(&x->type, attrs->axis));
    KilnAttrs_arg_max first = *attrs;
    first.select_last_index = false;
    return kiln_match_replace(match, kiln_match_build(match, KILN_OP_arg_max, &first, &x, 1));
}

/* --- counts --- */

static KilnValue *
number(const KilnMatch *match, KilnDType dtype, int64_t value)
{
    const KilnType type = kiln_type_scalar(dtype);
    return kiln_build_constant(match->root->function, match->root, "count",
                               kiln_tensor_new_splat(&type, (double)value));
}

/* The extent of dim @axis of @x plus @more, as a scalar. */
static KilnValue *
extent_of(KilnMatch *match, KilnValue *x, int axis, int64_t more)
{
    const KilnDType dtype = match->root->results[0].type.dtype;
    const KilnAttrs_cast cast = kiln_cast_to(dtype);
    KilnType dim = kiln_type_make(KILN_DTYPE_i64, 1, &x->type.dims[axis]);
    dim.open[0] = x->type.open[axis];
    if (!dim.open[0])
        return number(match, dtype, x->type.dims[axis] + more);
    KilnValue *list =
        kiln_extents_build(match->root->function, match->root, x, &dim, false, match->error);
    const KilnType scalar = kiln_type_scalar(KILN_DTYPE_i64);
    KilnValue *n =
        list ? kiln_reshape_build(match->root->function, match->root, list, &scalar, match->error)
             : NULL;
    if (n && dtype != KILN_DTYPE_i64)
        n = kiln_match_build(match, KILN_OP_cast, &cast, &n, 1);
    return n && more ? kiln_add_number(match->root, n, more, match->error) : n;
}

/* @line along dim @axis of the type of @x. */
static KilnValue *
spread(KilnMatch *match, KilnValue *line, KilnValue *x, int axis)
{
    KilnFunction *function = match->root->function;
    KilnType type = kiln_type_make(line->type.dtype, 1, line->type.dims);
    type.open[0] = line->type.open[0];
    for (int d = axis + 1; d < x->type.rank; d++)
        type.dims[type.rank++] = 1;
    if (type.rank > 1)
        line = kiln_reshape_build(function, match->root, line, &type, match->error);
    if (x->type.rank == 1 || !line)
        return line;
    KilnValue *shape = kiln_extents_build(function, match->root, x, &x->type, false, match->error);
    KilnValue *operands[] = { line, shape };
    return shape ? kiln_match_build(match, KILN_OP_expand, NULL, operands, 2) : NULL;
}

/* Whether @dtype has all whole numbers up to @most. */
static bool
has_counts(KilnDType dtype, int64_t most)
{
    const bool is_float = dtype == KILN_DTYPE_f32 || dtype == KILN_DTYPE_f64;
    return dtype == KILN_DTYPE_i64 || (dtype == KILN_DTYPE_i32 && most < G_MAXINT32) ||
           (is_float && most < 1 << 24);
}

static bool
count(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnAttrs_cum_sum *attrs = kiln_attrs(node, cum_sum);
    KilnValue *x = kiln_match_value(match, "x");
    const KilnKnown *stated = kiln_match_value(match, "axis")->known;
    double one = 0;
    int64_t least, most;
    if (!stated || stated->n != 1 || x->type.rank < 1)
        return false;
    const int axis = kiln_type_axis(&x->type, stated->v[0]);
    if (axis < 0 || !kiln_type_knows_dim(&x->type, axis))
        return false;
    kiln_type_dim_range(&x->type, axis, &least, &most);
    GUARD(ones, kiln_value_uniform(x, &one) && one == 1);
    GUARD(whole_numbers, has_counts(x->type.dtype, most));
    const int64_t before = attrs->exclusive ? 1 : 0;
    KilnValue *low = number(match, x->type.dtype, 1 - before);
    KilnValue *high = extent_of(match, x, axis, attrs->reverse ? -before : 1 - before);
    KilnValue *end = attrs->reverse ? number(match, x->type.dtype, -before) : high;
    KilnValue *step = number(match, x->type.dtype, attrs->reverse ? -1 : 1);
    KilnValue *line =
        high ? kiln_range_build(match->root, attrs->reverse ? high : low, end, step, match->error)
             : NULL;
    return line && kiln_match_replace(match, spread(match, line, x, axis));
}

static const KilnRule rules[] = {
    RULE("top-k-of-one", E, "(top_k ? ?)", take_one),
    RULE("fewer-top-k", E, "(top_k ? ?)", take_fewer),
    RULE("arg-max-of-hardmax", E, "(arg_max (hardmax#hot ?x))", skip_hardmax),
    RULE("count-ones", E, "(cum_sum ?x ?axis)", count),
};

RULE_PASS(simplify_selections, FORWARD);
