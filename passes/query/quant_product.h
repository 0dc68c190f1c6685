/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for products (conv, conv_transpose, matmul, gemm) of dequantized operands. */
#ifndef KILN_PASSES_QUERY_QUANT_PRODUCT_H
#define KILN_PASSES_QUERY_QUANT_PRODUCT_H

#include "passes/rule.h"

/** True for conv, conv_transpose, matmul and gemm. */
bool kiln_op_is_product(KilnOp op);

/** The value that @value is dequantized from, with the parameters in its type. NULL if there is
 * none, or if its reals are rounded to fewer digits than f32 has. */
KilnValue *kiln_quant_source(const KilnValue *value);

/** The same, also through a view (reshape, flatten, …) of a source with one scale. Builds that view
 * of the source before the root of @match. NULL if there is none, or with an error. */
KilnValue *kiln_quant_source_of_view(const KilnMatch *match, const KilnValue *value);

/** Where the scales of @dequantize, a dequantize_linear, lie. */
typedef struct {
    int64_t axis;  /* along which they differ; may count from the end */
    int64_t block; /* elements along it that share one; 0: there are no blocks */
} KilnQuantBlocks;
KilnQuantBlocks kiln_quant_blocks(const KilnNode *dequantize);

/** True if @op is the product of its operands and a sum with the third, no more. A gemm may
 * transpose the right operand. */
bool kiln_product_is_plain(const KilnNode *op);
/** True if @op is a gemm that transposes its right operand. */
bool kiln_product_turns_right(const KilnNode *op);

/** The most steps from the zero point that a quantized @type stores. */
double kiln_quant_most_steps(const KilnType *type);

/** The number of products in one sum of @op, or a bound of it where a dim is open; 0 if not known.
 */
double kiln_quant_terms(const KilnNode *op);

/** True if f32 holds the reals of both types, and sums of fewer than 2^31 steps. */
bool kiln_quant_products_survive_f32(const KilnType *x, const KilnType *w);

#endif
