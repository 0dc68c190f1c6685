/* SPDX-License-Identifier: Apache-2.0 */
/* merge-matmuls-lhs: products with the same right operand become one, which reads it once.
 *
 *      a   w     b   w                 concat(a, b)   w
 *       \ /       \ /                         \    /
 *      matmul    matmul        =>            matmul
 *        |         |                           |
 *                                          split rows
 *
 * The same for gemms with equal attributes and one bias. Joining literals is left to
 * constant-fold. It must pay: what is not read again, the shared matrix for each product but the
 * first, must be more than what copying costs, joining the rows and taking those of the result
 * apart. So it is small matrices times one big matrix that are merged.
 *
 * requires nothing, preserves nothing; class U: kernels for other shapes may sum in another order.
 * Operands of all products must be there before the first reader of any. Extents that the costs
 * depend on must be known; quantized products, whose parameters may differ, stay; a literal that
 * others read too is not copied. */
#include "passes/pass.h"
#include "passes/query/join_products.h"

static const char rule[] = "merge-matmuls-lhs";

GRAPH_PASS(merge_matmuls_lhs);

gboolean
kiln_pass_merge_matmuls_lhs(KilnFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    return kiln_join_products(function, KILN_JOIN_LEFT, rule, context, changed, error);
}
