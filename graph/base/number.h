/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text that reads back to the same bits, the 16-bit floats, and sums of sizes. */
#ifndef KILN_GRAPH_BASE_NUMBER_H
#define KILN_GRAPH_BASE_NUMBER_H

#include "graph/kiln-types.h"

#include <stdbool.h>

/** Appends the shortest decimal that parses back to @value; `inf`, `-inf`, `nan`, and any NaN but
 * the default quiet one as `nan(0x…)` with all its bits. The form does not depend on the locale. */
void kiln_print_f32(GString *out, float value);
void kiln_print_f64(GString *out, double value);

/** @a + @b, neither below 0; INT64_MAX where there is no such number. */
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

/** What a float type can hold. */
typedef struct {
    int digits;     /* bits of the significand, with the one that is not stored; 0: no float type */
    double epsilon; /* the step behind 1 */
    double largest; /* finite number */
    double smallest; /* normal number above 0 */
} KilnFloatFormat;
const KilnFloatFormat *kiln_float_format(KilnDType dtype);

/** One element of plain payload as a double or an integer; @bytes may be misaligned. Integers over
 * 2^53 lose bits in the first, floats are truncated towards zero in the second. */
double kiln_element_as_f64(KilnDType dtype, const void *bytes, int64_t index);
int64_t kiln_element_as_i64(KilnDType dtype, const void *bytes, int64_t index);
/** Stores @value as one element of @dtype, rounded to it; integers saturate, NaN becomes 0 in them.
 */
void kiln_element_store_f64(KilnDType dtype, void *bytes, int64_t index, double value);

#endif
