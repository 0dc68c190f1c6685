/* SPDX-License-Identifier: Apache-2.0 */
/* merge-transpose-into-matmul: a transpose of what is flattened in front of literal weights goes
 * into the order of their rows.
 *
 *          x                    x
 *          |                    |
 *     transpose p               |
 *          |          =>        |                W' : the rows of W, whose numbers are indices of
 *     reshape, flatten       reshape  W'              the dims that p permutes, in the order of x
 *          |  W                 \    /
 *        matmul, gemm          matmul, gemm
 *
 * The reshape must flatten, into the dim that the product sums over, exactly the last dims of the
 * transpose, and p must leave the dims before them where they are. Converters write it where a
 * network whose channels are last is flattened. Transpose and reshape must have no other readers.
 * W is never changed in place: others may read it.
 *
 * requires nothing, preserves nothing; class U: the products are summed in another order. */
#include "graph/op/matmul.h"
#include "graph/op/reshape.h"
#include "passes/permute/permute.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

/* The dims from the result on are those that the last dim of @reshaped counts, and @perm keeps the
 * others; -1 where there are no such. */
static int
first_flattened(const KilnType *transposed, const KilnType *reshaped, const KilnPerm *perm)
{
    int64_t sum = reshaped->rank > 0 ? reshaped->dims[reshaped->rank - 1] : -1, product = 1;
    int kept = 0;
    while (kept < perm->rank && perm->at[kept] == kept)
        kept++;
    for (int d = perm->rank - 1; d >= 0 && transposed->dims[d] > 0; d--) {
        product *= transposed->dims[d];
        if (product == sum && d <= kept)
            return d;
        if (product > sum)
            break;
    }
    return -1;
}

/* The weights' dim that is summed over becomes the dims @first … of the transpose, which are
 * permuted back. */
static KilnValue *
permuted_weights(KilnNode *before, const KilnValue *weights, const KilnNode *transpose, int first,
                 bool sums_columns, GError **error)
{
    KilnPerm perm = kiln_perm_of(transpose), inverse = kiln_perm_inverse(&perm), all;
    const KilnType *transposed = &transpose->results[0].type;
    int n = perm.rank - first, other = sums_columns ? 0 : n;
    KilnType split = { .rank = n + 1 };
    all.rank = n + 1;
    split.dims[other] = weights->type.dims[sums_columns ? 0 : 1];
    all.at[other] = other;
    for (int d = 0; d < n; d++) {
        int to = d + sums_columns;
        split.dims[to] = transposed->dims[first + d];
        all.at[to] = inverse.at[first + d] - first + sums_columns;
    }
    return kiln_perm_literal_split(before, weights, &split, &all, error);
}

static bool
merge(KilnMatch *match)
{
    KilnNode *product = match->root, *transpose = kiln_match_node(match, "transpose");
    const KilnNode *reshape = kiln_match_node(match, "reshape");
    const KilnValue *weights = kiln_match_value(match, "weights");
    const KilnType *reshaped = &reshape->results[0].type;
    KilnPerm perm = kiln_perm_of(transpose);
    bool is_gemm = product->op == KILN_OP_gemm;
    bool sums_columns = is_gemm && kiln_attrs(product, gemm)->transB;
    GUARD(plain, perm.rank >= 0 && !reshaped->layout && !product->results[0].type.layout);
    GUARD(sums_last_dim, !is_gemm || !kiln_attrs(product, gemm)->transA);
    GUARD(matrix, weights->type.rank == 2 && kiln_perm_can_move(weights));
    int first = first_flattened(&transpose->results[0].type, reshaped, &perm);
    GUARD(flattens_last_dims, first >= 0 && perm.rank - first + 1 <= KILN_MAX_RANK);
    KilnValue *operands[3] = { NULL, NULL, kiln_node_operand(product, 2) };
    operands[0] = kiln_reshape_build(product->function, product, transpose->operands[0].value,
                                     reshaped, match->error);
    operands[1] = operands[0] ? permuted_weights(product, weights, transpose, first, sums_columns,
                                                 match->error)
                              : NULL;
    if (!operands[1])
        return false;
    KilnNodeSpec spec = { .op = product->op,
                          .name = product->name,
                          .operands = operands,
                          .n_operands = product->n_operands,
                          .attrs = product->attrs,
                          .types = &product->results[0].type };
    return kiln_match_replace(match, kiln_match_build_node(match, &spec));
}

static const KilnRule rules[] = {
    RULE("merge-transpose-into-matmul", U,
         "(matmul|gemm (reshape|flatten#reshape! (transpose#transpose! ?) ...) $weights ...)",
         merge),
};

RULE_PASS(merge_transpose_into_matmul, FORWARD);
