/* SPDX-License-Identifier: Apache-2.0 */
/* split-batched-matmul: a product of many matrices with one and the same matrix.
 *
 *     x: [B,M,K]   w: [1,K,N]              x: [B,M,K]   w: [1,K,N]
 *         |          |                           \      /
 *         |       expand [B,K,N]    =>            matmul
 *          \        /                               |
 *            matmul
 *
 * The product broadcasts by itself, so that w is not copied. And where something is added to each
 * column, the batch becomes rows, because then the sum is part of a gemm:
 *
 *     x: [B,M,K]   w: [K,N]               x as [B·M,K]   w    c
 *          \       /                              \     |    /
 *           matmul   c: [N]        =>                 gemm
 *               \    /                                |
 *                add                              reshape [B,M,N]
 *
 * Reshaping moves no data. Without something to add it would gain nothing: kernels fold batch dims
 * into rows where they continue each other.
 *
 * requires nothing, preserves nothing; expand-into-matmul is class E, the other U: the sum is
 * rounded at other places. The matrix dims must stay as they are; at most one extent of the batch
 * may be unknown, and then none is 0. Quantized products stay. */
#include "passes/rule.h"
#include "graph/op/matmul.h"
#include "graph/op/reshape.h"

/* --- copies that broadcasting makes superfluous --- */

/* True where @copied repeats @type along dims in front of the matrix alone. */
static bool
copies_batch(const KilnType *type, const KilnType *copied)
{
    if (type->rank < 2 || copied->rank < type->rank)
        return false;
    for (int d = 1; d <= type->rank; d++) {
        bool same = kiln_type_equal_dims(type, type->rank - d, copied, copied->rank - d);
        if (!same && (d <= 2 || type->dims[type->rank - d] != 1))
            return false;
    }
    return true;
}

static bool
drop_copy(KilnMatch *match)
{
    KilnNode *matmul = match->root, *copy = kiln_match_node(match, "copy");
    KilnValue *w = kiln_match_value(match, "w");
    GUARD(copies_batch, copies_batch(&w->type, &copy->results[0].type));
    KilnValue *operands[] = { matmul->operands[0].value, matmul->operands[1].value };
    operands[operands[0] == &copy->results[0] ? 0 : 1] = w;
    return kiln_match_replace_by_op(match, KILN_OP_matmul, operands, 2);
}

/* --- batches as rows --- */

static KilnValue *
reshape(KilnMatch *match, KilnValue *x, const int64_t *dims, uint32_t rank, const KilnType *type)
{
    KilnNode *root = match->root;
    KilnValue *shape = kiln_build_ints(match->root->function, root, dims, rank);
    KilnAttrs_reshape attrs = { .allowzero = false };
    KilnNodeSpec spec = { .op = KILN_OP_reshape,
                          .operands = (KilnValue *[]){ x, shape },
                          .n_operands = 2,
                          .attrs = &attrs,
                          .types = type };
    return kiln_match_build_node(match, &spec);
}

/* How many extents of @type are not known, more than there can be where one is 0. */
static int
open_extents(const KilnType *type)
{
    int open = 0;
    for (int d = 0; d < type->rank; d++) {
        if (type->dims[d] == 0)
            return KILN_MAX_RANK;
        open += type->dims[d] < 0;
    }
    return open;
}

static bool
rows_of_batch(KilnMatch *match)
{
    KilnNode *product = kiln_match_node(match, "product");
    KilnValue *x = product->operands[0].value, *w = product->operands[1].value;
    KilnValue *c = kiln_match_value(match, "c");
    const KilnType *type = &product->results[0].type;
    GUARD(plain, !w->type.layout);
    GUARD(batch, x->type.rank > 2 && type->rank == x->type.rank);
    GUARD(one_matrix, w->type.rank == 2 && kiln_type_is_static(&w->type));
    GUARD(vector, c->type.rank == 0 || (c->type.rank == 1 && c->type.dims[0] == w->type.dims[1]));
    GUARD(extents, open_extents(type) <= 1 && w->type.dims[0] > 0);
    int64_t rows[] = { -1, w->type.dims[0] };
    KilnValue *flat = reshape(match, x, rows, 2, NULL);
    KilnAttrs_gemm attrs = { .alpha = 1, .beta = 1 };
    KilnValue *gemm =
        flat ? kiln_match_build(match, KILN_OP_gemm, &attrs, (KilnValue *[]){ flat, w, c }, 3)
             : NULL;
    if (!gemm)
        return false;
    int64_t dims[KILN_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        dims[d] = type->dims[d] < 0 ? -1 : type->dims[d];
    return kiln_match_replace(match, reshape(match, gemm, dims, (uint32_t)type->rank, type));
}

static const KilnRule rules[] = {
    RULE("expand-into-matmul", E, "(matmul ? (expand|tile#copy ?w:number ?))", drop_copy),
    RULE("expand-into-left-matmul", E, "(matmul (expand|tile#copy ?w:number ?) ?)", drop_copy),
    RULE("batch-as-rows", U, "(add~ (matmul#product! ? ?):float ?c)", rows_of_batch),
};

RULE_PASS(split_batched_matmul, FORWARD);
