/* SPDX-License-Identifier: Apache-2.0 */
/* Prints numbers that read back to the same bits, converts 16-bit floats, and adds sizes. */
#ifndef KILN_GRAPH_BASE_NUMBER_H
#define KILN_GRAPH_BASE_NUMBER_H

#include "graph/kiln-types.h"

#include <stdbool.h>

/** Appends the shortest decimal that parses back to @value, or `inf`, `-inf`, `nan`. Other NaNs
 * than the default quiet one are `nan(0x…)` with all bits. The locale does not matter. */
void kiln_print_f32(GString *out, float value);
void kiln_print_f64(GString *out, double value);

/** @a + @b, both at least 0; INT64_MAX if the sum overflows. */
static inline int64_t
kiln_add_capped(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/** IEEE binary16 and bfloat16 (the upper half of a float); narrowing rounds half to even. */
float kiln_f16_to_f32(uint16_t bits);
uint16_t kiln_f32_to_f16(float value);
uint16_t kiln_f64_to_f16(double value);
float kiln_bf16_to_f32(uint16_t bits);
uint16_t kiln_f32_to_bf16(float value);

/** Limits of a float type. */
typedef struct {
    int digits;      /* bits of the significand, with the hidden one; 0: no float type */
    double epsilon;  /* distance from 1 to the next number */
    double largest;  /* finite number */
    double smallest; /* normal number above 0 */
} KilnFloatFormat;
const KilnFloatFormat *kiln_float_format(KilnDType dtype);

/** One element of plain payload as a double or an integer. @bytes may be misaligned. Integers over
 * 2^53 lose bits as a double. Floats are truncated towards zero as an integer. */
double kiln_element_as_f64(KilnDType dtype, const void *bytes, int64_t index);
int64_t kiln_element_as_i64(KilnDType dtype, const void *bytes, int64_t index);
/** Stores @value as one element, rounded to @dtype. Integers saturate; NaN becomes 0 in them. */
void kiln_element_store_f64(KilnDType dtype, void *bytes, int64_t index, double value);

#endif
