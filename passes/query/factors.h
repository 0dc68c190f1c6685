/* SPDX-License-Identifier: Apache-2.0 */
/* Reads products and sums as exporters write them, with literal factors in any place and order.
 * Looks at few nodes, and only through values with one reader. */
#ifndef KILN_PASSES_QUERY_FACTORS_H
#define KILN_PASSES_QUERY_FACTORS_H

#include "graph/module.h"

enum {
    KILN_PRODUCT_FACTORS = 4
};

/** A product of floats. */
typedef struct {
    double scale; /* of all divisors and literal factors with equal elements */
    uint32_t n;
    KilnValue *factors[KILN_PRODUCT_FACTORS];
} KilnProduct;

/** Reads the factors of @value through multiplications, squares and divisions by literals. Goes
 * through values of @function with a single reader (@value may have more). False if there are too
 * many factors. */
bool kiln_product_of(const KilnFunction *function, KilnValue *value, KilnProduct *out);

/** True if @a and @b agree within the rounding of @dtype. One is written in it, the other computed
 * from a few such numbers. */
bool kiln_numbers_agree(double a, double b, KilnDType dtype);
/** True if @value is a literal whose elements all agree with @number in the value's type. */
bool kiln_literal_is(const KilnValue *value, double number);
/** True if @number keeps its value as an attribute, which has the precision of f32. Data of other
 * types than f64 need no more. */
bool kiln_number_fits_attribute(double number, KilnDType dtype);

/** The operand of the commutative binary @node beside @other; NULL if @other is no operand. */
KilnValue *kiln_other_operand(const KilnNode *node, const KilnValue *other);

#endif
