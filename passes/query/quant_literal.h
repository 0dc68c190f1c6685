/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization of literals while compiling, with the bits that the kernels would give. */
#ifndef KILN_PASSES_QUERY_QUANT_LITERAL_H
#define KILN_PASSES_QUERY_QUANT_LITERAL_H

#include "graph/module.h"

/** What quantize_linear, dequantize_linear or rescale_quantized to @to makes of a literal of
 * numbers whose quantized types are regular (passes/query/quant_range.h); a splat stays one where
 * it can. NULL without an error for anything else, and NULL and @error where memory is short. */
KilnTensor *kiln_quant_convert(const KilnValue *literal, const KilnType *to, GError **error);
/** True where that gives a splat of a splat, which needs no storage. */
bool kiln_quant_converts_splat(const KilnValue *literal, const KilnType *to);

#endif
