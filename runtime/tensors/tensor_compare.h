/* SPDX-License-Identifier: Apache-2.0 */
/* How far tensors are apart, element by element. */
#ifndef KILN_RUNTIME_TENSORS_TENSOR_COMPARE_H
#define KILN_RUNTIME_TENSORS_TENSOR_COMPARE_H

#include "graph/tensor.h"

/** What an element may be: |got - want| <= atol + rtol * |want|, or, with @bits, want to the bit.
 * NaN is NaN either way, infinities must match. */
typedef struct {
    double rtol, atol;
    bool bits;
} KilnTolerance;

/** The largest differences are those of all finite elements, good or bad. */
typedef struct {
    int64_t n, n_bad;
    int64_t first, worst; /* bad elements: the first, and the one that is farthest off; -1: none */
    double got, want;     /* the worst one */
    double max_abs, max_rel; /* relative to what is wanted, where that is not 0 */
    double max_ulp; /* numbers of the type between the two; 0 for types that are no floats */
} KilnDifference;

/** FALSE and @error only where tensors cannot be compared: KILN_ERROR_MISMATCH for other types,
 * KILN_ERROR_MEMORY. Texts are equal or all bad. */
gboolean kiln_tensor_difference(const KilnTensor *got, const KilnTensor *want,
                                const KilnTolerance *tolerance, KilnDifference *out,
                                GError **error);

/** The same under @rtol and @atol where any bad element is KILN_ERROR_MISMATCH, which says what and
 * where. The largest differences go to @out_abs and @out_rel (may be NULL). */
gboolean kiln_tensor_compare(const KilnTensor *got, const KilnTensor *want, double rtol,
                             double atol, double *out_abs, double *out_rel, GError **error);

#endif
