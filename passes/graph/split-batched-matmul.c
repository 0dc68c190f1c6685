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
 * rounded at other places. The matrix dims must stay as they are, and no extent may be 0. Open
 * extents are read from the operands; at most one may be unknown. Quantized products stay. */
#include "graph/op/matmul.h"
#include "graph/op/reshape.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

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

/* The rows of all matrices of @x, [-1, @depth]. */
static KilnValue *
rows_of(KilnMatch *match, KilnValue *x, int64_t depth)
{
    int64_t rows[] = { -1, depth };
    KilnValue *operands[] = { x, kiln_build_ints(match->root->function, match->root, rows, 2) };
    KilnAttrs_reshape attrs = { .allowzero = false };
    return kiln_match_build(match, KILN_OP_reshape, &attrs, operands, 2);
}

static bool
is_empty(const KilnType *type)
{
    bool empty = false;
    for (int d = 0; d < type->rank; d++)
        empty |= type->dims[d] == 0;
    return empty;
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
    GUARD(vector, c->type.rank == 0 ||
                      (c->type.rank == 1 && kiln_type_equal_dims(&c->type, 0, &w->type, 1)));
    GUARD(extents, !is_empty(type) && w->type.dims[0] > 0);
    KilnValue *flat = rows_of(match, x, w->type.dims[0]);
    KilnAttrs_gemm attrs = { .alpha = 1, .beta = 1 };
    KilnValue *gemm =
        flat ? kiln_match_build(match, KILN_OP_gemm, &attrs, (KilnValue *[]){ flat, w, c }, 3)
             : NULL;
    if (!gemm)
        return false;
    KilnValue *shaped =
        kiln_reshape_build(match->root->function, match->root, gemm, type, match->error);
    return kiln_match_replace(match, shaped);
}

static const KilnRule rules[] = {
    RULE("expand-into-matmul", E, "(matmul ? (expand|tile#copy ?w:number ?))", drop_copy),
    RULE("expand-into-left-matmul", E, "(matmul (expand|tile#copy ?w:number ?) ?)", drop_copy),
    RULE("batch-as-rows", U, "(add~ (matmul#product! ? ?):float ?c)", rows_of_batch),
};

RULE_PASS(split_batched_matmul, FORWARD);
