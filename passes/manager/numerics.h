/* SPDX-License-Identifier: Apache-2.0 */
/* How far results may move when a pass of a numerics class ran, and whether they did. */
#ifndef KILN_PASSES_MANAGER_NUMERICS_H
#define KILN_PASSES_MANAGER_NUMERICS_H

#include "passes/pass.h"

/** What the bound of a function is made of. */
typedef struct {
    double terms; /* roundings that can add up in one result: operations and terms of reductions */
    double step;  /* the largest quantization step; 0 where nothing is quantized */
    /* of the coarsest 16-bit float that is computed on the way: an f32 made of it is no better; 0
     * where there is none */
    double epsilon;
} KilnErrorTerms;

/** Roundings that can add up in one result of @node. */
double kiln_node_terms(const KilnNode *node);
/** The largest quantization step of what @node reads; 0 where that is not quantized. */
double kiln_node_step(const KilnNode *node);
KilnErrorTerms kiln_error_terms(const KilnFunction *function);
KilnErrorTerms kiln_ir_error_terms(const KilnIRFunction *function);

/** What holds of either. */
KilnErrorTerms kiln_error_terms_join(const KilnErrorTerms *a, const KilnErrorTerms *b);

/** True where @after may stand for @before:
 *  E  equal bits (any NaN equals any NaN);
 *  Z  the same, and zeros of either sign are equal;
 *  U  |a-b| <= terms × epsilon of the element type or of @terms, whichever is larger, × the largest
 *     magnitude of the tensor, the classical bound of summation with the magnitude of the result
 *     for that of its terms; infinities and NaNs at the same places;
 *  QT few elements differ, kiln_numerics_ties() of them: integers by one step, floats by more than
 *     U's bound and by no more than that and one step;
 *  QS the same of any number of elements;
 *  L  whatever the pipeline's flags allow: only element type and shape are compared.
 * KILN_ERROR_MISMATCH names the worst element, both values and the bound. */
gboolean kiln_compare_numerics(const KilnTensor *before, const KilnTensor *after,
                               KilnNumerics numerics, const KilnErrorTerms *terms, GError **error);

/** How many of @n elements may be a step off in class QT. Values lie at ties by chance, and scales
 * of simple ratios bring ties about: one in 64, and one more in what is small. */
int64_t kiln_numerics_ties(int64_t n);
/** How far an element of @after may be from the same one of @before in class U, QT or QS; they are
 * of one type and shape. False and @error where they cannot be read. */
bool kiln_numerics_bound(const KilnTensor *before, const KilnTensor *after, KilnNumerics numerics,
                         const KilnErrorTerms *terms, double *out, GError **error);
/** "E", "Z", "U", "QT", "QS" or "L". */
const char *kiln_numerics_name(KilnNumerics numerics);

#endif
