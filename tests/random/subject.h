/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph that passes are tried on, and what the reference evaluates it to. */
#ifndef KILN_TESTS_RANDOM_SUBJECT_H
#define KILN_TESTS_RANDOM_SUBJECT_H

#include "passes/manager/results.h"

/** A graph, and what is known of it whatever the passes. */
typedef struct {
    const KilnModule *module;
    GPtrArray *inputs;     /* KilnTensor*, per argument */
    KilnResults *expected; /* evaluated node by node on the reference */
    double most;           /* the largest magnitude on the way; infinite where something is
                              no finite number; -1: not evaluated yet */
} Subject;

/** Verifies and evaluates @module, which is borrowed. */
gboolean subject_init(Subject *subject, const KilnModule *module, GError **error);
void subject_clear(Subject *subject);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Subject, subject_clear)

/** The largest magnitude on the way to the results: roundings are relative to it. Where terms
 * cancel, results are much smaller. */
double subject_largest(Subject *subject);

/** As kiln_results_compare() with what @subject evaluates to, but for U, QT and QS with the
 * magnitude of the terms in place of the result's. Where something on the way overflows, a rewrite
 * may keep it from doing so; a quotient by zero shows the zero's sign; and where stored integers
 * move by a step, products and quotients of them move by more: only types are compared then. (One
 * pass of class QT or QS is compared value by value as well, as passes/manager/cut_points.h says.)
 */
gboolean subject_compare(Subject *subject, const KilnResults *after, KilnNumerics numerics,
                         GError **error);

#endif
