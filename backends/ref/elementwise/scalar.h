/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise operations on single elements, for the kernels of the instructions and the
 * interpreter of `stack`. A stack has the bits of its steps run one by one. */
#ifndef KILN_BACKENDS_REF_ELEMENTWISE_SCALAR_H
#define KILN_BACKENDS_REF_ELEMENTWISE_SCALAR_H

#include "backends/ref/kernel.h"
#include "ir/instr.h"

/** An operation with one operand. A function is NULL if its class of types lacks the operation. */
typedef struct {
    double (*f)(double x, const void *attrs);
    int64_t (*s)(int64_t x, const void *attrs);
    uint64_t (*u)(uint64_t x, const void *attrs);
    bool (*test)(double x, const void *attrs); /* floats; the result is a bool */
} RefUnary;

/** An operation with two operands of one type. */
typedef struct {
    double (*f)(double a, double b, const void *attrs);
    int64_t (*s)(int64_t a, int64_t b, const void *attrs);
    uint64_t (*u)(uint64_t a, uint64_t b, const void *attrs);
    bool divides;    /* integers: the second operand must not be 0 */
    uint8_t compare; /* REF_LESS | …: the result is true if one of them holds for a and b */
} RefBinary;

enum {
    REF_LESS = 1,
    REF_EQUAL = 2,
    REF_GREATER = 4,
};

/** Returns the operation of @kind, or NULL if @kind is no such instruction. */
const RefUnary *kiln_ref_unary_op(KilnInstrKind kind);
const RefBinary *kiln_ref_binary_op(KilnInstrKind kind);

RefValue kiln_ref_apply_unary(const RefUnary *op, const void *attrs, RefClass class_, RefValue x);
/** Stores the result in @out (a bool for comparisons). Returns NULL or an error text. */
const char *kiln_ref_apply_binary(const RefBinary *op, const void *attrs, RefClass class_,
                                  const RefValue operands[2], RefValue *out);
/** Stores operands[0] ^ operands[1], in the class of the base. The exponent may be of another. */
const char *kiln_ref_apply_pow(RefClass base, RefClass exponent, const RefValue operands[2],
                               RefValue *out);
/** Converts @value as `cast` does and stores it. */
void kiln_ref_cast_element(KilnDType from, RefValue value, KilnDType to, void *data, int64_t i);

/** Returns the larger or the smaller; NaN if either is NaN (numpy's maximum and minimum). */
static inline double
ref_max(double a, double b)
{
    return a >= b || a != a ? a : b;
}

static inline double
ref_min(double a, double b)
{
    return a <= b || a != a ? a : b;
}

#endif
