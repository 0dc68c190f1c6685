/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph to try passes on, and its results on the reference. */
#ifndef KILN_TESTS_RANDOM_SUBJECT_H
#define KILN_TESTS_RANDOM_SUBJECT_H

#include "passes/manager/results.h"
#include "passes/pass.h"

/** A graph, and facts about it that do not depend on passes. */
typedef struct {
    const KilnModule *module;
    GPtrArray *inputs;     /* KilnTensor*, per argument */
    KilnResults *expected; /* evaluated node by node on the reference */
    double most;           /* the largest magnitude of any value; infinite if one is not finite;
                              -1: not evaluated yet */
} Subject;

/** Verifies and evaluates @module, which is borrowed. */
gboolean subject_init(Subject *subject, const KilnModule *module, GError **error);
void subject_clear(Subject *subject);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Subject, subject_clear)

/** The largest magnitude of any value: roundings are relative to it. Results are much smaller if
 * terms cancel. */
double subject_largest(Subject *subject);

/** Like kiln_results_compare() with the results of @subject. For U, QT and QS the magnitude of the
 * terms replaces that of the result. In three cases only types are compared. A value overflows: a
 * rewrite may avoid that. A quotient by zero shows the sign of zero. Stored integers move by a
 * step: their products and quotients move by more. One pass of class QT or QS is compared value by
 * value too, see passes/manager/cut_points.h. */
gboolean subject_compare(Subject *subject, const KilnResults *after, KilnNumerics numerics,
                         GError **error);

#endif
