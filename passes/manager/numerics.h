/* SPDX-License-Identifier: Apache-2.0 */
/* Checks how far results move under a pass of a numerics class. */
#ifndef KILN_PASSES_MANAGER_NUMERICS_H
#define KILN_PASSES_MANAGER_NUMERICS_H

#include "graph/binding.h"
#include "passes/pass.h"

/** The parts of the error bound of a function. */
typedef struct {
    double terms; /* roundings that can add up in one result: operations and terms of sums */
    double step;  /* the largest quantization step; 0: nothing is quantized */
    /* of the coarsest 16-bit float on the way, because an f32 made of it is no better; 0: none */
    double epsilon;
} KilnErrorTerms;

/** Roundings that can add up in one result of @node. Open dims have the numbers of @binding; those
 * that it lacks, or all where it is NULL, have their hints. */
double kiln_node_terms(const KilnNode *node, const KilnDimBinding *binding);
/** The largest quantization step of the operands of @node; 0 if none is quantized. */
double kiln_node_step(const KilnNode *node);
KilnErrorTerms kiln_error_terms(const KilnFunction *function, const KilnDimBinding *binding);
KilnErrorTerms kiln_ir_error_terms(const KilnIRFunction *function);

/** The terms that hold for both. */
KilnErrorTerms kiln_error_terms_join(const KilnErrorTerms *a, const KilnErrorTerms *b);

/** True where @after may stand for @before:
 *  E  equal bits (any NaN equals any NaN);
 *  Z  the same, and zeros of either sign are equal;
 *  U  |a-b| <= terms × epsilon × the largest magnitude of the tensor; epsilon is that of the
 *     element type or of @terms, the larger. This is the classical bound of summation, with the
 *     magnitude of the result in place of its terms. Infinities and NaNs stay at their places;
 *  QT at most kiln_numerics_ties() elements differ: integers by one step, floats by more than U's
 *     bound, up to that bound and one step;
 *  QS the same for any number of elements;
 *  L  the pipeline's flags decide: only element type and shape are compared.
 * Sequences, optionals and maps are compared item by item. The magnitude is that of all items.
 * KILN_ERROR_MISMATCH names the worst element, both values and the bound. */
gboolean kiln_compare_numerics(const KilnTensor *before, const KilnTensor *after,
                               KilnNumerics numerics, const KilnErrorTerms *terms, GError **error);

/** How many of @n elements may differ by a step in class QT. Values lie at ties by chance, and more
 * often with scales of simple ratios. The limit is one in 64, and one more for small tensors. */
int64_t kiln_numerics_ties(int64_t n);
/** The largest allowed distance of an element of @after from that of @before in class U, QT or QS.
 * Both have one type and shape. False and @error if they cannot be read. */
bool kiln_numerics_bound(const KilnTensor *before, const KilnTensor *after, KilnNumerics numerics,
                         const KilnErrorTerms *terms, double *out, GError **error);
/** "E", "Z", "U", "QT", "QS" or "L". */
const char *kiln_numerics_name(KilnNumerics numerics);

#endif
