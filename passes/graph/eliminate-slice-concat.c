/* SPDX-License-Identifier: Apache-2.0 */
/* eliminate-slice-concat: neighbouring operands of a concat that are neighbouring parts of one
 * value become one slice of it.
 *
 *          x                x                x [2,9,4]                     x
 *       /     \             |              /    |    \                     |
 *    x[1:3]  x[3:4]  b    x[1:4]  b    [:,1:2][:,2:3][:,3:4]  =>      x[:,1:4] [2,3,4]
 *        \    |     /  =>     \   |        \    |    /                     |
 *           concat           concat      concat axis 2             reshape [2,1,12]
 *
 *   parts-along-axis    parts along the joined axis
 *   parts-before-axis   at least three parts of extent 1 along the axis before it: slice, reshape
 *   parts-after-axis    at least four parts of extent 1 along the axis after it: slice, transpose,
 *                       reshape
 *
 * Parts are slices, or results of a split. requires nothing, preserves nothing; class E: elements
 * are moved. Fewer of them are moved, too: what the parts' makers copied is copied once by the
 * slice, so nothing else may read a part, and no other result of a split either. Where the parts
 * are all of their source, that stands in their place, and who else reads them does not matter. */
#include "graph/op/concat.h"
#include "graph/op/transpose.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

/* Operands [first, end) of a concat. */
typedef struct {
    const KilnNode *concat;
    uint32_t first, end;
    KilnPart part; /* what they are together */
} Run;

/* The longest run from operand @first on. */
static bool
find_run(const KilnNode *concat, uint32_t first, Run *run)
{
    KilnPart next;
    *run = (Run){ .concat = concat, .first = first, .end = first + 1 };
    if (!kiln_part_of(concat->operands[first].value, concat->function, &run->part))
        return false;
    for (; run->end < concat->n_operands; run->end++) {
        if (!kiln_part_of(concat->operands[run->end].value, concat->function, &next) ||
            next.source != run->part.source || next.axis != run->part.axis ||
            next.begin != run->part.end)
            break;
        run->part.end = next.end;
    }
    return true;
}

static bool
in_run(const Run *run, const KilnUse *use)
{
    return use->user == run->concat && use->index >= run->first && use->index < run->end;
}

/* Nothing but the run reads what the makers of its parts make. */
static bool
frees_makers(const Run *run)
{
    for (uint32_t i = run->first; i < run->end; i++) {
        const KilnNode *maker = run->concat->operands[i].value->def;
        for (uint32_t r = 0; r < maker->n_results; r++) {
            kiln_foreach_use (use, &maker->results[r]) {
                if (!in_run(run, use))
                    return false;
            }
        }
    }
    return true;
}

static bool
is_whole(const Run *run)
{
    return run->part.begin == 0 && run->part.end == run->part.source->type.dims[run->part.axis];
}

/* --- building --- */

/* The source cut to what the run takes of it. */
static KilnValue *
cut(const Run *run, KilnNode *before, GError **error)
{
    if (is_whole(run))
        return run->part.source;
    return kiln_part_build(before->function, before, &run->part, NULL, error);
}

/* The concat with @value in place of the run; @value itself where the run is all there is. */
static KilnValue *
rejoin(const Run *run, KilnNode *concat, KilnValue *value, GError **error)
{
    if (run->end - run->first == concat->n_operands)
        return value;
    uint32_t n = 0;
    g_autofree KilnValue **operands = g_new(KilnValue *, concat->n_operands);
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        if (i <= run->first || i >= run->end)
            operands[n++] = i == run->first ? value : concat->operands[i].value;
    }
    KilnNodeSpec spec = { .op = KILN_OP_concat,
                          .name = concat->name,
                          .operands = operands,
                          .n_operands = n,
                          .attrs = concat->attrs,
                          .types = &concat->results[0].type,
                          .before = concat };
    KilnNode *node = kiln_node_new(concat->function, &spec, error);
    return node ? &node->results[0] : NULL;
}

/* The shape that the run's operands have when joined. */
static KilnType
joined_type(const Run *run, int axis)
{
    KilnType type = run->concat->operands[run->first].value->type;
    const KilnDim *open = type.open[axis];
    if (open)
        kiln_type_set_dim(&type, axis,
                          kiln_dim_scale(kiln_dim_table_of(open), open, run->end - run->first));
    else if (type.dims[axis] >= 0)
        type.dims[axis] *= run->end - run->first;
    return type;
}

/* --- the rules --- */

static bool
may_join(KilnMatch *match, const Run *run)
{
    GUARD(plain, !run->part.source->type.layout);
    GUARD(frees_makers, is_whole(run) || frees_makers(run));
    return true;
}

static bool
may_join_along(KilnMatch *match, const Run *run)
{
    GUARD(same_axis, run->part.axis == kiln_concat_axis(run->concat));
    return may_join(match, run);
}

static bool
join_along(KilnMatch *match)
{
    KilnNode *concat = match->root;
    for (Run run = { .end = 0 }; run.end < concat->n_operands;) {
        if (!find_run(concat, run.end, &run) || run.end - run.first < 2 ||
            !may_join_along(match, &run))
            continue;
        KilnValue *value = cut(&run, concat, match->error);
        KilnValue *joined = value ? rejoin(&run, concat, value, match->error) : NULL;
        return kiln_match_replace(match, joined);
    }
    return false;
}

/* At least @least parts of extent 1 along @axis. */
static bool
may_join_thin(KilnMatch *match, const Run *run, int axis, uint32_t least)
{
    const KilnType *type = &run->concat->operands[run->first].value->type;
    uint32_t n = run->end - run->first;
    GUARD(axis_beside, run->part.axis == axis);
    GUARD(enough, n >= least);
    GUARD(thin, type->dims[axis] == 1 && run->part.end - run->part.begin == n);
    return may_join(match, run);
}

static bool
join_before(KilnMatch *match)
{
    KilnNode *concat = match->root;
    int axis = kiln_concat_axis(concat);
    for (Run run = { .end = 0 }; run.end < concat->n_operands;) {
        if (!find_run(concat, run.end, &run) || !may_join_thin(match, &run, axis - 1, 3))
            continue;
        KilnType type = joined_type(&run, axis);
        KilnValue *value = cut(&run, concat, match->error);
        KilnValue *shaped =
            value ? kiln_reshape_build(concat->function, concat, value, &type, match->error) : NULL;
        KilnValue *joined = shaped ? rejoin(&run, concat, shaped, match->error) : NULL;
        return kiln_match_replace(match, joined);
    }
    return false;
}

static KilnValue *
swap_dims(KilnMatch *match, KilnValue *value, int axis)
{
    int64_t perm[KILN_MAX_RANK];
    for (int d = 0; d < value->type.rank; d++)
        perm[d] = d == axis ? axis + 1 : d == axis + 1 ? axis : d;
    KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)value->type.rank, .v = perm } };
    return kiln_match_build(match, KILN_OP_transpose, &attrs, &value, 1);
}

static bool
join_after(KilnMatch *match)
{
    KilnNode *concat = match->root;
    int axis = kiln_concat_axis(concat);
    for (Run run = { .end = 0 }; run.end < concat->n_operands;) {
        if (!find_run(concat, run.end, &run) || !may_join_thin(match, &run, axis + 1, 4))
            continue;
        KilnType type = joined_type(&run, axis);
        KilnValue *value = cut(&run, concat, match->error);
        KilnValue *swapped = value ? swap_dims(match, value, axis) : NULL;
        KilnValue *shaped =
            swapped ? kiln_reshape_build(concat->function, concat, swapped, &type, match->error)
                    : NULL;
        KilnValue *joined = shaped ? rejoin(&run, concat, shaped, match->error) : NULL;
        return kiln_match_replace(match, joined);
    }
    return false;
}

static const KilnRule rules[] = {
    RULE("parts-along-axis", E, "(concat ? ? ...)", join_along),
    RULE("parts-before-axis", E, "(concat ? ? ? ...)", join_before),
    RULE("parts-after-axis", E, "(concat ? ? ? ? ...)", join_after),
};

RULE_PASS(eliminate_slice_concat, FORWARD);
