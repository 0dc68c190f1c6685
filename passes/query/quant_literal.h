/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes literals at compile time, with the same bits as the kernels. */
#ifndef KILN_PASSES_QUERY_QUANT_LITERAL_H
#define KILN_PASSES_QUERY_QUANT_LITERAL_H

#include "graph/module.h"

/** Applies quantize_linear, dequantize_linear or rescale_quantized to @to to a literal of numbers
 * whose quantized types are regular (passes/query/quant_range.h). A splat stays a splat if
 * possible. NULL without an error for anything else; NULL and @error if memory is short. */
KilnTensor *kiln_quant_convert(const KilnValue *literal, const KilnType *to, GError **error);
/** True if the result for a splat is a splat, which needs no storage. */
bool kiln_quant_converts_splat(const KilnValue *literal, const KilnType *to);

#endif
