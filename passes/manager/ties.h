/* SPDX-License-Identifier: Apache-2.0 */
/* Ties: reals that lie, within the roundings that made them, in the middle between two stored
 * numbers. Which of the two a quantize_linear stores is what class QT leaves open. */
#ifndef KILN_PASSES_MANAGER_TIES_H
#define KILN_PASSES_MANAGER_TIES_H

#include "passes/query/quant_range.h"
#include "passes/manager/results.h"

/** What a quantize_linear reads. */
typedef struct {
    KilnTensor *tensor; /* NULL where it is not known */
    double terms;       /* roundings that can add up in one element of it: of its node, and of those
                           before it back to what was quantized */
    double most;        /* the largest magnitude */
} KilnReal;

/** What the quantize_linear that makes @value reads; NULL where it is none, or reads no float that
 * a node makes. */
const KilnValue *kiln_real_quantized(const KilnValue *value);
/** @tensor, which is taken over, is what @value was evaluated to. */
KilnReal kiln_real_make(const KilnValue *value, KilnTensor *tensor);
/** How far an element of @real may be from the exact one, in steps of @scale: the bound of class U,
 * for numbers that reach half of what 8 bits hold, or as far as they do. */
double kiln_real_slack(const KilnReal *real, double scale);
/** True where @steps (a real over its scale) is not more than @slack from the middle. */
bool kiln_is_tie(double steps, double slack);
/** @is, quantized as @quant says, with the elements of @was where they are a step apart and @real
 * is at a tie. NULL where there is nothing to tell ties by. */
KilnTensor *kiln_without_ties(const KilnTensor *was, const KilnTensor *is, const KilnQuant *quant,
                              const KilnReal *real);

#endif
