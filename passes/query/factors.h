/* SPDX-License-Identifier: Apache-2.0 */
/* Products and sums as exporters write them: literal factors anywhere, in any association and
 * order. Looks at few nodes, and only through values with one reader. */
#ifndef KILN_PASSES_QUERY_FACTORS_H
#define KILN_PASSES_QUERY_FACTORS_H

#include "graph/module.h"

enum {
    KILN_PRODUCT_FACTORS = 4
};

/** A product of floats. */
typedef struct {
    double scale; /* of all literal factors whose elements are one number, and divisors */
    uint32_t n;
    KilnValue *factors[KILN_PRODUCT_FACTORS];
} KilnProduct;

/** Takes the product that @value is apart: through multiplications, divisions by literals and
 * squares, as far as values of @function go that nothing else reads (@value itself may have other
 * readers). False where there are more factors. */
bool kiln_product_of(const KilnFunction *function, KilnValue *value, KilnProduct *out);

/** Two numbers of which one was written in @dtype, and one computed from few that were. */
bool kiln_numbers_agree(double a, double b, KilnDType dtype);
/** True where @value is a literal whose elements are all @number, as @value's type has it. */
bool kiln_literal_is(const KilnValue *value, double number);
/** True where @number is the same as an attribute, which has the precision of f32: where the data
 * is no more precise either. */
bool kiln_number_fits_attribute(double number, KilnDType dtype);

/** The operand of the commutative @node of two operands that is not @other's; NULL where none of
 * them is @other. */
KilnValue *kiln_other_operand(const KilnNode *node, const KilnValue *other);

#endif
