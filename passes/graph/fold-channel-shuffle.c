/* SPDX-License-Identifier: Apache-2.0 */
/* fold-channel-shuffle: a dim that is split, swapped and joined again becomes Glow's operator.
 *
 *     x : [.., c, ..]
 *     |
 *     reshape : [.., g, c/g, ..]                          x
 *     |                                                   |
 *     transpose, which swaps these two dims    =>    channel_shuffle {axis, group=g}
 *     |
 *     reshape : [.., c, ..]
 *
 * requires nothing, preserves nothing; class E: the same elements in the same places. Every dim is
 * checked: the transpose must swap the dims that the reshape splits and no other (Glow does not
 * look). Nothing else may read what stands between. A swap with a dim of 1 is left alone, as it
 * moves nothing. */
#include "passes/rule.h"

#include "graph/infer/infer.h"
#include "graph/op/transpose.h"

/* The first dim that a permutation moves; 0 where it moves none. */
static int
first_moved(const int *perm, int rank)
{
    int at = 0;
    while (at < rank && perm[at] == at)
        at++;
    return at < rank ? at : 0;
}

static bool
swaps_only(const int *perm, int rank, int at)
{
    if (at + 1 >= rank || perm[at] != at + 1 || perm[at + 1] != at)
        return false;
    for (int d = at + 2; d < rank; d++) {
        if (perm[d] != d)
            return false;
    }
    return true;
}

/* Whether @split is @type with dim @at split in two. */
static bool
splits_dim(const KilnType *type, const KilnType *split, int at)
{
    if (split->rank != type->rank + 1)
        return false;
    for (int d = 0; d < type->rank; d++) {
        int s = d + (d > at);
        if (d != at && !kiln_type_equal_dims(split, s, type, d))
            return false;
    }
    KilnType parts = kiln_type_scalar(type->dtype), whole = parts;
    parts.rank = 2;
    whole.rank = 1;
    for (int i = 0; i < 2; i++) {
        parts.dims[i] = split->dims[at + i];
        parts.open[i] = split->open[at + i];
    }
    whole.dims[0] = type->dims[at];
    whole.open[0] = type->open[at];
    return kiln_type_same_elements(&parts, &whole);
}

static bool
fold_shuffle(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *split = &kiln_match_value(match, "split")->type;
    int perm[KILN_MAX_RANK];
    if (split->rank < 0 || !kiln_transpose_perm(kiln_match_node(match, "swap"), perm, match->error))
        return false;
    GUARD(quantized_per_tensor, !x->type.quant || x->type.quant->axis < 0);
    int axis = first_moved(perm, split->rank);
    GUARD(swaps_neighbours, swaps_only(perm, split->rank, axis));
    GUARD(of_one_dim, splits_dim(&x->type, split, axis));
    GUARD(moves_elements, split->dims[axis] > 1 && split->dims[axis + 1] != 1);
    KilnAttrs_channel_shuffle attrs = { .axis = axis, .group = split->dims[axis] };
    return kiln_match_replace(match,
                              kiln_match_build(match, KILN_OP_channel_shuffle, &attrs, &x, 1));
}

static const KilnRule rules[] = {
    RULE("channel-shuffle", E, "(reshape (transpose!#swap (reshape!#split ?x ?)) ?)", fold_shuffle),
};

RULE_PASS(fold_channel_shuffle, FORWARD);
