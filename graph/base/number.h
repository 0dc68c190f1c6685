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

/** A number of 4, 6 or 8 bits as a float, exactly; the bits above those of @dtype do not count. */
float kiln_low_float_to_f32(KilnDType dtype, uint8_t code);
/** How a number becomes a float of 8 bits or fewer. */
typedef enum {
    KILN_ROUND_UP, /* f8e8m0 alone rounds another way than half to even */
    KILN_ROUND_DOWN,
    KILN_ROUND_NEAREST,
} KilnRoundMode;
/** Rounds half to even. What is out of range becomes the largest number with @saturate; else
 * infinity, or NaN where there is none. Types of fewer than 8 bits always saturate, and have a zero
 * for NaN. f8e8m0 rounds to a power of two as @mode says, a tie of NEAREST upwards. It has NaN for
 * numbers below 0. */
uint8_t kiln_low_float_from_f64(KilnDType dtype, double value, bool saturate, KilnRoundMode mode);

/** Elements of 8 bits and fewer as ONNX's files pack them: a stream of bits, low bits first. Bits
 * of an element that its type lacks do not count. */
int64_t kiln_packed_bytes(KilnDType dtype, int64_t n);
void kiln_pack_elements(KilnDType dtype, void *packed, const void *elements, int64_t n);
/** Elements @first … @first + @n - 1. */
void kiln_unpack_elements(KilnDType dtype, void *elements, const void *packed, int64_t first,
                          int64_t n);

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
/** Stores @value as one element, rounded to @dtype. Integers and floats of 8 bits saturate; NaN
 * becomes 0 in integers. f8e8m0 rounds up. */
void kiln_element_store_f64(KilnDType dtype, void *bytes, int64_t index, double value);

#endif
