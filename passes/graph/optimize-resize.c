/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-resize: resizes that resize nothing go, and what they only repeat is repeated after
 * them.
 *
 *      x [1,3,8,8]        x            x [1,3,1,8]              x [1,3,1,8]
 *      |                  |            |                        |
 *    resize         =>    |          resize            =>     resize [1,3,1,16]
 *      |                  |            |                        |
 *      [1,3,8,8]          |            [1,3,5,16]             expand [1,3,5,16]
 *
 *   identity-nearest, identity-interpolated   every scale is 1, or every size the operand's
 *   repeat-nearest, repeat-linear             dims of extent 1 that become bigger
 *
 * requires nothing, preserves nothing. Nearest is class E: elements are moved. Linear and cubic are
 * U: an interpolation between equal numbers, or with a neighbour of weight 0, rounds (and an
 * infinite neighbour of weight 0 gives NaN). Left alone: a crop, whose box is its own; coordinates
 * of tf_half_pixel_for_nn, which are half an element off; antialiasing; integers that linear would
 * round down. */
#include "graph/op/expand.h"
#include "graph/op/resize.h"
#include "passes/query/literal.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

#include <string.h>

enum {
    X,
    ROI,
    SCALES,
    SIZES
};

/* An operand that is there and not an empty list: exporters write absent ones as empty. */
static bool
is_stated(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(node, i);
    return value && kiln_type_elements(&value->type) != 0;
}

/* The dim that entry @i of the lists is for. */
static int
dim_of(const KilnNode *node, uint32_t i)
{
    KilnInts axes = kiln_attrs(node, resize)->axes;
    return axes.n ? kiln_type_axis(&node->operands[X].value->type, axes.v[i]) : (int)i;
}

/* --- identity --- */

static bool
plain_coordinates(KilnMatch *match, const KilnNode *node)
{
    const char *mode = kiln_attrs(node, resize)->coordinate_transformation_mode;
    GUARD(crops_nothing, strcmp(mode, "tf_crop_and_resize") != 0);
    GUARD(centred, strcmp(mode, "tf_half_pixel_for_nn") != 0);
    return true;
}

/* @scales: those of the node's operand, or NULL. */
static bool
keeps_sizes(KilnMatch *match, const KilnNode *node, const double *scales)
{
    const KilnType *x = &node->operands[X].value->type;
    const KilnKnown *sizes = is_stated(node, SIZES) ? node->operands[SIZES].value->known : NULL;
    GUARD(literal, sizes || scales);
    int64_t n = kiln_type_elements(&node->operands[sizes ? SIZES : SCALES].value->type);
    for (int64_t i = 0; i < n; i++) {
        bool keeps = sizes ? sizes->v[i] == x->dims[dim_of(node, (uint32_t)i)] : scales[i] == 1;
        GUARD(keeps_size, keeps);
    }
    return true;
}

static double *
read_scales(const KilnNode *node, GError **error)
{
    return is_stated(node, SCALES) ? kiln_literal_read(node->operands[SCALES].value, error) : NULL;
}

static bool
drop(KilnMatch *match)
{
    const KilnNode *node = match->root;
    GUARD(ranked, node->operands[X].value->type.rank >= 0);
    if (!plain_coordinates(match, node))
        return false;
    g_autofree double *scales = read_scales(node, match->error);
    return !*match->error && keeps_sizes(match, node, scales) &&
           kiln_match_replace(match, node->operands[X].value);
}

static bool
drop_nearest(KilnMatch *match)
{
    GUARD(nearest, strcmp(kiln_attrs(match->root, resize)->mode, "nearest") == 0);
    return drop(match);
}

/* A nearest one that is an identity is gone by the rule before. */
static bool
drop_interpolated(KilnMatch *match)
{
    GUARD(no_antialias, !kiln_attrs(match->root, resize)->antialias);
    return drop(match);
}

/* --- repeats --- */

/* What a resize without the repeated dims has as scales or sizes, and what follows it. */
typedef struct {
    int64_t n;
    double *scales; /* NULL: by sizes */
    int64_t sizes[KILN_MAX_RANK];
    int64_t target[KILN_MAX_RANK]; /* of the expand */
    bool repeats, resizes;
} Plan;

static void
plan_entry(const KilnNode *node, uint32_t i, Plan *plan)
{
    const KilnType *x = &node->operands[X].value->type, *type = &node->results[0].type;
    int d = dim_of(node, i);
    bool repeated = x->dims[d] == 1 && type->dims[d] > 1;
    if (repeated) {
        plan->target[d] = type->dims[d];
        plan->repeats = true;
        plan->sizes[i] = 1;
        if (plan->scales)
            plan->scales[i] = 1;
    }
    plan->resizes |= plan->scales ? plan->scales[i] != 1 : plan->sizes[i] != x->dims[d];
}

static void
make_plan(const KilnNode *node, Plan *plan)
{
    const KilnKnown *sizes = is_stated(node, SIZES) ? node->operands[SIZES].value->known : NULL;
    plan->n = kiln_type_elements(&node->operands[sizes ? SIZES : SCALES].value->type);
    for (int d = 0; d < KILN_MAX_RANK; d++)
        plan->target[d] = 1;
    for (uint32_t i = 0; i < plan->n; i++) {
        plan->sizes[i] = sizes ? sizes->v[i] : 0;
        plan_entry(node, i, plan);
    }
}

static KilnValue *
build_smaller(KilnMatch *match, const Plan *plan)
{
    KilnNode *node = match->root;
    KilnFunction *function = match->root->function;
    KilnValue *operands[4] = { NULL };
    if (!plan->resizes)
        return node->operands[X].value;
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[i] = node->operands[i].value;
    if (plan->scales)
        operands[SCALES] = kiln_literal_build(function, node, "scales", &operands[SCALES]->type,
                                              plan->scales, match->error);
    else
        operands[SIZES] = kiln_build_ints(function, node, plan->sizes, (uint32_t)plan->n);
    if (*match->error)
        return NULL;
    return kiln_match_build(match, KILN_OP_resize, node->attrs, operands, node->n_operands);
}

static KilnValue *
build_expand(KilnMatch *match, KilnValue *smaller, const Plan *plan)
{
    KilnNode *node = match->root;
    const KilnType *type = &node->results[0].type;
    KilnValue *operands[] = { smaller, kiln_build_ints(match->root->function, node, plan->target,
                                                       (uint32_t)type->rank) };
    KilnNodeSpec spec = {
        .op = KILN_OP_expand, .operands = operands, .n_operands = 2, .types = type
    };
    return kiln_match_build_node(match, &spec);
}

static bool
pull_out(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnAttrs_resize *attrs = kiln_attrs(node, resize);
    g_autofree double *scales = NULL;
    if (!plain_coordinates(match, node))
        return false;
    GUARD(plain, !node->operands[X].value->type.layout && !node->results[0].type.layout);
    GUARD(stretches, strcmp(attrs->keep_aspect_ratio_policy, "stretch") == 0);
    Plan plan = { .scales = scales = read_scales(node, match->error) };
    if (*match->error)
        return false;
    GUARD(literal, scales || (is_stated(node, SIZES) && node->operands[SIZES].value->known));
    make_plan(node, &plan);
    GUARD(repeats, plan.repeats);
    KilnValue *smaller = build_smaller(match, &plan);
    KilnValue *value = smaller ? build_expand(match, smaller, &plan) : NULL;
    return kiln_match_replace(match, value);
}

static bool
repeat_nearest(KilnMatch *match)
{
    const KilnNode *node = match->root;
    GUARD(nearest, strcmp(kiln_attrs(node, resize)->mode, "nearest") == 0);
    GUARD(not_rescaled, kiln_quant_same(&node->operands[X].value->type, &node->results[0].type));
    return pull_out(match);
}

static bool
repeat_linear(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnAttrs_resize *attrs = kiln_attrs(node, resize);
    GUARD(linear, strcmp(attrs->mode, "linear") == 0);
    GUARD(no_antialias, !attrs->antialias);
    GUARD(floats, kiln_dtype_is_float(node->results[0].type.dtype));
    return pull_out(match);
}

static const KilnRule rules[] = {
    RULE("identity-nearest", E, "(resize ? ...)", drop_nearest),
    RULE("identity-interpolated", U, "(resize ? ...)", drop_interpolated),
    RULE("repeat-nearest", E, "(resize ? ...)", repeat_nearest),
    RULE("repeat-linear", U, "(resize ? ...)", repeat_linear),
};

RULE_PASS(optimize_resize, FORWARD);
