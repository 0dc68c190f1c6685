/* SPDX-License-Identifier: Apache-2.0 */
/* Queries about literals and broadcasts: the numbers of a constant, equal numbers, and the dims
 * along which an operand varies. Also builds constants from numbers.
 *
 * Numbers are doubles. Integers that a double cannot hold exactly count as unreadable. */
#ifndef KILN_PASSES_QUERY_LITERAL_H
#define KILN_PASSES_QUERY_LITERAL_H

#include "graph/module.h"

/** The literal of 16-bit floats that @value casts to f32 or f64: both have the same numbers. @value
 * itself if it is no such cast; NULL for NULL. */
const KilnValue *kiln_literal_source(const KilnValue *value);

/** True if @dtype holds @numbers as well as f32: always for f32 and f64, and for 16-bit types that
 * hold them exactly. A weight rounded to 16 bits costs more precision than all roundings of a
 * kernel, because kernels add up in f32. */
bool kiln_literal_keeps_bits(KilnDType dtype, const double *numbers, int64_t n);

/** The elements of a literal in row-major order; free with g_free(). NULL without an error if
 * @value is no literal, is quantized, or has elements that are no exact doubles. NULL and @error if
 * its bytes cannot be read. */
double *kiln_literal_read(const KilnValue *value, GError **error);
/** kiln_literal_read() for a constant. */
double *kiln_numbers_of(const KilnConstant *constant, GError **error);

/** True if @value is a literal of a plain number type whose elements are all @number. Looks at
 * 65536 elements at most. */
bool kiln_literal_uniform(const KilnValue *value, double *number);
/** The same for any value: nodes that only move or repeat elements are looked through, and extents
 * may be open. */
bool kiln_value_uniform(const KilnValue *value, double *number);

/** Bit d is set if @operand varies along dim d when it is broadcast to @type as in ONNX (aligned at
 * the last dim). All bits if a shape is not known or does not broadcast. */
uint32_t kiln_broadcast_dims(const KilnType *operand, const KilnType *type);

/** True if @operand, aligned at the last dim, broadcasts to @type and certainly does not enlarge
 * it. */
bool kiln_broadcasts_to(const KilnType *operand, const KilnType *type);

/** The number of a literal for each index of dim @axis of @type; free with g_free(). The literal
 * must broadcast to @type and vary along no other dim (a scalar or splat gives equal numbers). NULL
 * without an error if it does not. */
double *kiln_literal_along(const KilnValue *value, const KilnType *type, int axis, GError **error);

/** @numbers as a tensor of @type (static, plain), rounded to its element type. Free with
 * kiln_tensor_free(). NULL and @error if memory is short. */
KilnTensor *kiln_tensor_of_numbers(const KilnType *type, const double *numbers, GError **error);
/** Makes a `const` node of @type (static, plain) with @numbers, rounded to its element type. NULL
 * and @error if memory is short. */
KilnValue *kiln_literal_build(KilnFunction *function, KilnNode *before, const char *name,
                              const KilnType *type, const double *numbers, GError **error);
/** Makes a `const` node whose elements are all @number. It needs no storage. */
KilnValue *kiln_literal_build_splat(KilnFunction *function, KilnNode *before, const char *name,
                                    const KilnType *type, double number);
/** Makes a `const` node before @before: the bits of @literal under @type. The literal stays for its
 * other readers. */
KilnValue *kiln_literal_recast(KilnNode *before, const KilnValue *literal, const KilnType *type);

/** Bytes of the module's constants that count against the budget of folding; at most INT64_MAX. */
int64_t kiln_charged_bytes(const KilnModule *module);

/** A hash of the type, a few elements at both ends, and the generator of a generated constant. So
 * pages of big mapped weights are read only if two weights look alike. */
uint32_t kiln_constant_hash(const KilnConstant *constant);
/** True for equal types (with quantization and layout) and equal bits, or equal generators. Texts
 * equal only themselves. */
bool kiln_constant_same(const KilnConstant *a, const KilnConstant *b);

#endif
