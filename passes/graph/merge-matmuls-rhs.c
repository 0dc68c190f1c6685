/* SPDX-License-Identifier: Apache-2.0 */
/* merge-matmuls-rhs: products with the same left operand become one, which reads it once.
 *
 *      x   v     x   w                   x   concat(v, w)
 *       \ /       \ /                      \    /
 *      matmul    matmul        =>            matmul
 *        |         |                           |
 *                                         split columns
 *
 * The same for gemms with equal attributes and a bias per column each. Joining literals is left to
 * constant-fold. It must pay: what is not read again, a row of x for each product but the first,
 * must be more than what copying costs, taking each row of the result apart and joining what is not
 * literal. So it is narrow products of long rows that are merged; wide ones gain nothing.
 *
 * requires nothing, preserves nothing; class U: kernels for other shapes may sum in another order.
 * Operands of all products must be there before the first reader of any. Extents that the costs
 * depend on must be known; quantized products, whose parameters may differ, stay; a literal that
 * others read too is not copied. */
#include "passes/pass.h"
#include "passes/query/join_products.h"

static const char rule[] = "merge-matmuls-rhs";

GRAPH_PASS(merge_matmuls_rhs);

gboolean
kiln_pass_merge_matmuls_rhs(KilnFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    return kiln_join_products(function, KILN_JOIN_RIGHT, rule, context, changed, error);
}
