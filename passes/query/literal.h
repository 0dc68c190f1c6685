/* SPDX-License-Identifier: Apache-2.0 */
/* What passes ask of literals and broadcasts: the numbers of a constant, whether they are all one,
 * along which dims an operand varies; and constants made of numbers.
 *
 * Numbers are doubles. Integers that a double does not hold exactly count as unreadable. */
#ifndef KILN_PASSES_QUERY_LITERAL_H
#define KILN_PASSES_QUERY_LITERAL_H

#include "graph/module.h"

/** The literal of 16-bit floats that @value is a cast of, to f32 or f64: both have the same
 * numbers.
 * @value itself where it is no such cast; NULL for NULL. */
const KilnValue *kiln_literal_source(const KilnValue *value);

/** True where @numbers lose nothing in @dtype that f32 would keep: always in f32 and f64, and in 16
 * bits where these hold them. Rounding a weight to 16 bits costs more than all that a kernel
 * rounds, for kernels add up in f32. */
bool kiln_literal_keeps_bits(KilnDType dtype, const double *numbers, int64_t n);

/** The elements of a literal in row-major order, which the caller frees with g_free(); NULL without
 * an error where @value is no literal, is quantized, or has elements that are no exact doubles;
 * NULL and @error where its bytes cannot be had. */
double *kiln_literal_read(const KilnValue *value, GError **error);
/** The same of a constant. */
double *kiln_numbers_of(const KilnConstant *constant, GError **error);

/** True where @value is a literal whose elements (of a plain number type) are all @number. Looks at
 * 65536 elements at most. */
bool kiln_literal_uniform(const KilnValue *value, double *number);

/** Bit d is set where @operand, broadcast to @type as ONNX has it (aligned at the last dim), varies
 * along dim d; all bits where a shape is not known or does not broadcast. */
uint32_t kiln_broadcast_dims(const KilnType *operand, const KilnType *type);

/** True where @operand, aligned at the last dim, broadcasts to @type and surely makes nothing
 * larger of it. */
bool kiln_broadcasts_to(const KilnType *operand, const KilnType *type);

/** The number of a literal for each index of dim @axis of @type, to which it broadcasts without
 * varying along any other dim (a scalar or splat gives equal numbers). NULL without an error where
 * it is no such literal; freed with g_free(). */
double *kiln_literal_along(const KilnValue *value, const KilnType *type, int axis, GError **error);

/** @numbers as a tensor of @type (static, plain), rounded to its element type, for
 * kiln_tensor_free(). NULL and @error where memory is short. */
KilnTensor *kiln_tensor_of_numbers(const KilnType *type, const double *numbers, GError **error);
/** A `const` node of @type (static, plain) whose elements are @numbers rounded to its element type.
 * NULL and @error where memory is short. */
KilnValue *kiln_literal_build(KilnFunction *function, KilnNode *before, const char *name,
                              const KilnType *type, const double *numbers, GError **error);
/** The same with every element @number; takes no storage. */
KilnValue *kiln_literal_build_splat(KilnFunction *function, KilnNode *before, const char *name,
                                    const KilnType *type, double number);

/** Bytes of the module's constants that count against the budget of folding; at most INT64_MAX. */
int64_t kiln_charged_bytes(const KilnModule *module);

/** A hash of type, a few elements at either end, and how a generated constant is made: pages of big
 * mapped weights are touched only where two of them look alike. */
uint32_t kiln_constant_hash(const KilnConstant *constant);
/** Equal types (quantization and layout included) and equal bits; generated constants whose
 * generators are equal. Texts equal only themselves. */
bool kiln_constant_same(const KilnConstant *a, const KilnConstant *b);

#endif
