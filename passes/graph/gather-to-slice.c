/* SPDX-License-Identifier: Apache-2.0 */
/* gather-to-slice: a gather whose indices are known to follow each other is a slice.
 *
 *      x  i = [2]         x            x  i = 2            x           x  i = [[2]]        x
 *      | /                |            | /                 |           | /                 |
 *    gather     =>   slice 2:3       gather     =>    slice 2:3      gather     =>    slice 2:3
 *                                                          |                               |
 *                                                       squeeze                        unsqueeze
 *
 * requires nothing, preserves nothing; class E: elements are moved. Any number of indices in a row,
 * i, i + 1, …, as a vector; a single one of any rank. Negative indices count from the end. An open
 * extent may have any number that its bounds allow. An index that is out of range, or not known to
 * be in it, is left to the gather, which says so when it runs.
 * Picking extents out of a `shape` is left to simplify-shapes. */
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/reshape.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

/* Whether @n indices from @first on, which count from the end where @first is negative, lie in dim
 * @axis. The number of an open dim need not be known. */
static bool
runs_within(const KilnType *x, int axis, int64_t first, int64_t n)
{
    int64_t least, most;
    bool open = x->dims[axis] < 0;
    kiln_type_dim_range(x, axis, &least, &most);
    return first < 0 ? open && first >= -least && n <= -first : n <= least - first;
}

/* The indices of @node as a part of its data. */
static bool
indexed_part(KilnMatch *match, const KilnNode *node, KilnPart *part)
{
    KilnValue *x = node->operands[0].value;
    const KilnKnown *indices = node->operands[1].value->known;
    GUARD(plain, !x->type.layout);
    GUARD(indices_known, indices && indices->n > 0 && node->operands[1].value->type.rank >= 0);
    int axis = kiln_type_axis(&x->type, kiln_attrs(node, gather)->axis);
    if (axis < 0)
        return false;
    int64_t first = indices->v[0], from_end = MAX(x->type.dims[axis], 0);
    first += first < 0 ? from_end : 0;
    GUARD(in_range, runs_within(&x->type, axis, first, indices->n));
    for (int64_t i = 1; i < indices->n; i++)
        GUARD(in_a_row, indices->v[i] + (indices->v[i] < 0 ? from_end : 0) == first + i);
    int64_t end = first + indices->n;
    *part = (KilnPart){ x, axis, first, end == 0 && first < 0 ? INT64_MAX : end };
    return true;
}

/* The dims that the indices bring in place of the one that the slice keeps. */
static KilnValue *
fit_rank(KilnMatch *match, KilnValue *slice, const KilnPart *part, int rank)
{
    KilnNode *node = match->root;
    int64_t axes[KILN_MAX_RANK];
    uint32_t n = rank == 0 ? 1 : (uint32_t)rank - 1;
    for (uint32_t i = 0; i < n; i++)
        axes[i] = part->axis + i;
    KilnValue *operands[] = { slice, kiln_build_ints(match->root->function, node, axes, n) };
    KilnNodeSpec spec = { .op = rank == 0 ? KILN_OP_squeeze : KILN_OP_unsqueeze,
                          .operands = operands,
                          .n_operands = 2,
                          .types = &node->results[0].type };
    return kiln_match_build_node(match, &spec);
}

static bool
to_slice(KilnMatch *match)
{
    KilnNode *node = match->root;
    int rank = node->operands[1].value->type.rank;
    KilnPart part;
    GUARD(no_shape, !kiln_value_def_of(node->operands[0].value, KILN_OP_shape));
    if (!indexed_part(match, node, &part))
        return false;
    int64_t n = node->operands[1].value->known->n;
    GUARD(one_or_vector, rank == 1 || n == 1);
    KilnType type = kiln_part_type(&part, n);
    KilnValue *value = kiln_part_build(match->root->function, node, &part,
                                       rank == 1 ? &node->results[0].type : &type, match->error);
    if (value && rank != 1)
        value = fit_rank(match, value, &part, rank);
    return kiln_match_replace(match, value);
}

static const KilnRule rules[] = {
    RULE("gather-to-slice", E, "(gather ? ?)", to_slice),
};

RULE_PASS(gather_to_slice, FORWARD);
