/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of single elements for the kernels with quantized results. */
#ifndef KILN_BACKENDS_REF_INTEGER_QUANTIZE_H
#define KILN_BACKENDS_REF_INTEGER_QUANTIZE_H

#include "backends/ref/kernel.h"
#include "graph/type.h"

/** Stores round-half-to-even(@steps) + @zero, saturated to @dtype. NaN counts as 0 steps. */
void kiln_ref_store_quantized(KilnDType dtype, void *data, int64_t i, float steps, int64_t zero);

/** Returns the index of the scale and zero point of element @i of quantized @type. */
int64_t kiln_ref_quant_index(const KilnType *type, int64_t i);

/** A stored integer i means (i - zero_point) * scale. */
typedef struct {
    float scale;
    int32_t zero_point;
} KilnRefQuant;

/** Convert one element and store it at @i: a real number to an integer, an integer to a float, or
 * an integer to other parameters. */
void kiln_ref_quantize_element(float x, KilnRefQuant to, KilnDType dtype, void *data, int64_t i);
void kiln_ref_dequantize_element(int64_t x, KilnRefQuant from, KilnDType dtype, void *data,
                                 int64_t i);
void kiln_ref_rescale_element(int64_t x, KilnRefQuant from, KilnRefQuant to, KilnDType dtype,
                              void *data, int64_t i);

#endif
