/* SPDX-License-Identifier: Apache-2.0 */
/* Handles ties: a real in the middle between two stored numbers, within the roundings that made it.
 * Class QT lets quantize_linear store either number. */
#ifndef KILN_PASSES_MANAGER_TIES_H
#define KILN_PASSES_MANAGER_TIES_H

#include "graph/binding.h"
#include "graph/graph.h"

/** The operand of a quantize_linear. */
typedef struct {
    KilnTensor *tensor; /* NULL: not known */
    double terms; /* roundings that can add up in one element: of its node, and of earlier ones back
                     to quantized values */
    double most;  /* the largest magnitude */
} KilnReal;

/** The operand of the quantize_linear that makes @value. NULL if another node makes @value, or if
 * no node makes the operand, or if it is no float. */
const KilnValue *kiln_real_quantized(const KilnValue *value);
/** Makes the real of @value from its evaluated @tensor, which is taken over. @binding has the
 * numbers of open dims; NULL: they have their hints. */
KilnReal kiln_real_make(const KilnValue *value, const KilnDimBinding *binding, KilnTensor *tensor);
/** The largest error of an element of @real, in steps of @scale: the bound of class U. It takes the
 * largest magnitude as at least 2^7 steps, half of the range of 8 bits. */
double kiln_real_slack(const KilnReal *real, double scale);
/** True if @steps (a real over its scale) is at most @slack from the middle. */
bool kiln_is_tie(double steps, double slack);
/** @is, quantized as @quant, with the elements of @was where both differ by a step and @real is at
 * a tie. NULL if ties cannot be told. */
KilnTensor *kiln_without_ties(const KilnTensor *was, const KilnTensor *is, const KilnQuant *quant,
                              const KilnReal *real);

#endif
