/* SPDX-License-Identifier: Apache-2.0 */
/* Compares tensors element by element. */
#ifndef KILN_RUNTIME_TENSORS_TENSOR_COMPARE_H
#define KILN_RUNTIME_TENSORS_TENSOR_COMPARE_H

#include "graph/tensor.h"

/** The allowed difference of an element: |got - want| <= atol + rtol * |want|. With @bits the bits
 * must be equal. NaN matches NaN in both cases, and infinities must match. */
typedef struct {
    double rtol, atol;
    bool bits;
} KilnTolerance;

/** The largest differences cover all finite elements, good or bad. */
typedef struct {
    int64_t n, n_bad;
    int64_t first, worst;    /* bad elements: the first, and the farthest off; -1: none */
    double got, want;        /* the worst one */
    double max_abs, max_rel; /* relative to want, if that is not 0 */
    double max_ulp;          /* numbers of the type between both; 0 for types other than floats */
} KilnDifference;

/** FALSE and @error only if tensors cannot be compared: KILN_ERROR_MISMATCH for different types,
 * KILN_ERROR_MEMORY. Texts are equal or all bad. */
gboolean kiln_tensor_difference(const KilnTensor *got, const KilnTensor *want,
                                const KilnTolerance *tolerance, KilnDifference *out,
                                GError **error);

/** kiln_tensor_difference() under @rtol and @atol, with KILN_ERROR_MISMATCH for a bad element; the
 * message names it. The largest differences go to @out_abs and @out_rel (may be NULL). */
gboolean kiln_tensor_compare(const KilnTensor *got, const KilnTensor *want, double rtol,
                             double atol, double *out_abs, double *out_rel, GError **error);

#endif
