/* SPDX-License-Identifier: Apache-2.0 */
/* raise-space-to-depth: blocks that are moved by a transpose of six dims become the operator.
 *
 *     x : [n, c, h·b, w·b]                        x : [n, c·b·b, h, w]
 *     |                                           |
 *     reshape : [n, c, h, b, w, b]                reshape : [n, b, b, c, h, w]  DCR
 *     |                                           |         [n, c, b, b, h, w]  CRD
 *     transpose [0, 3, 5, 1, 2, 4]                transpose [0, 3, 4, 1, 5, 2]  DCR
 *     |                                           |         [0, 1, 4, 2, 5, 3]  CRD
 *     reshape : [n, c·b·b, h, w]                  reshape : [n, c, h·b, w·b]
 *
 *     =>  space_to_depth {blocksize=b}            =>  depth_to_space {blocksize=b, mode}
 *
 * requires nothing, preserves nothing; class E: the same elements in the same places. Nothing else
 * may read what stands between. PyTorch's pixel_unshuffle orders blocks as opsets before 28 cannot
 * say of space_to_depth, and stays: what is exported can be read by many. */
#include "passes/rule.h"

#include "graph/infer/infer.h"
#include "graph/op/transpose.h"

#include <string.h>

/* How the six dims are ordered, and which of them make a dim of x: `from` has the first of each. */
typedef struct {
    KilnOp op;
    const char *mode; /* of depth_to_space */
    int perm[6];
    int block[2]; /* the two dims of blocks */
    int from[4];  /* of the four dims of x */
} Form;

static const Form forms[] = {
    { KILN_OP_space_to_depth, NULL, { 0, 3, 5, 1, 2, 4 }, { 3, 5 }, { 0, 1, 2, 4 } },
    { KILN_OP_depth_to_space, "DCR", { 0, 3, 4, 1, 5, 2 }, { 1, 2 }, { 0, 1, 4, 5 } },
    { KILN_OP_depth_to_space, "CRD", { 0, 1, 4, 2, 5, 3 }, { 2, 3 }, { 0, 1, 4, 5 } },
};

static const Form *
form_of(const KilnNode *transpose, GError **error)
{
    int perm[KILN_MAX_RANK];
    if (transpose->results[0].type.rank != 6 || !kiln_transpose_perm(transpose, perm, error))
        return NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        if (memcmp(forms[i].perm, perm, sizeof forms[i].perm) == 0)
            return &forms[i];
    }
    return NULL;
}

static KilnType
dims_from(const KilnType *type, int first, int end)
{
    KilnType part = kiln_type_scalar(type->dtype);
    for (int d = first; d < end; d++) {
        part.dims[part.rank] = type->dims[d];
        part.open[part.rank++] = type->open[d];
    }
    return part;
}

/* Whether each dim of @x is the product of the dims of @split from its first one to the next's. */
static bool
splits_dims(const Form *form, const KilnType *x, const KilnType *split)
{
    for (int d = 0; d < 4 && x->rank == 4; d++) {
        int first = form->from[d], end = d < 3 ? form->from[d + 1] : 6;
        KilnType parts = dims_from(split, first, end), whole = dims_from(x, d, d + 1);
        if (!kiln_type_same_elements(&parts, &whole))
            return false;
    }
    return x->rank == 4;
}

static bool
raise_block_move(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *split = &kiln_match_value(match, "split")->type;
    const Form *form = form_of(kiln_match_node(match, "move"), match->error);
    GUARD(known_order, form != NULL);
    GUARD(quantized_per_tensor, !x->type.quant || x->type.quant->axis < 0);
    int64_t block = split->dims[form->block[0]];
    GUARD(square_blocks, block > 1 && block == split->dims[form->block[1]]);
    GUARD(splits_dims, splits_dims(form, &x->type, split));
    KilnAttrs_space_to_depth down = { .blocksize = block, .mode = "DCR" };
    KilnAttrs_depth_to_space up = { .blocksize = block, .mode = form->mode };
    const void *attrs = form->op == KILN_OP_space_to_depth ? (void *)&down : &up;
    return kiln_match_replace(match, kiln_match_build(match, form->op, attrs, &x, 1));
}

static const KilnRule rules[] = {
    RULE("move-blocks", E, "(reshape (transpose!#move (reshape!#split ?x ?)) ?)", raise_block_move),
};

RULE_PASS(raise_space_to_depth, FORWARD);
