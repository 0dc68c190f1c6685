/* SPDX-License-Identifier: Apache-2.0 */
/* What passes ask of products (conv, conv_transpose, matmul, gemm) whose operands are dequantized.
 */
#ifndef KILN_PASSES_QUERY_QUANT_PRODUCT_H
#define KILN_PASSES_QUERY_QUANT_PRODUCT_H

#include "passes/rule.h"

/** What @value is dequantized from, its parameters in its type; NULL where it is not, or where its
 * reals are rounded to fewer digits than f32 has. */
KilnValue *kiln_quant_source(const KilnValue *value);

/** The same, and seen through a view (reshape, flatten, …) of what has one scale: the view of that
 * is built before the root of @match. NULL where there is none, or with @error. */
KilnValue *kiln_quant_source_of_view(const KilnMatch *match, const KilnValue *value);

/** The most steps from the zero point that a quantized @type stores. */
double kiln_quant_most_steps(const KilnType *type);

/** Products that one sum of @op adds up; 0 where not known. */
double kiln_quant_terms(const KilnNode *op);

/** The reals of both types are in f32, and so are sums of less than 2^31 steps. */
bool kiln_quant_products_survive_f32(const KilnType *x, const KilnType *w);

#endif
