/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a function computes before a pass and after it, compared one by one.
 *
 * A rewrite of class U or QT may move a value by a rounding or a step; what is computed of it may
 * then move by many: a rescale by 8 makes eight steps of one, an argmax takes another index. So
 * where the results are further apart than the class allows, the function is run again, and each
 * value that it has under the name and type of before is, where it is within the bound of the
 * class, put back to what it was. What is left between two such values is what one rewrite did.
 *
 *      before   %q ── 3 ──▶ %r = rescale ×8 ── 24 ──▶ %y          after, %q made in another way:
 *                                                              4 ──▶ 32: eight steps
 *                                            cut at %q         4 → 3 ──▶ 24: equal
 *
 * Of class QT, elements that differ by a step at a tie count as equal: where the real that is
 * quantized is known on one side, what lies within its rounding of the middle between two stored
 * numbers is a tie. All others are what kiln_numerics_ties() counts.
 *
 * The bound of a value is that of the class, with the step of what its own node reads. One that is
 * out of it stays as it is, and with it all that is computed of it: a wrong scale or zero point
 * reaches the results as it would without. */
#ifndef KILN_PASSES_MANAGER_CUT_POINTS_H
#define KILN_PASSES_MANAGER_CUT_POINTS_H

#include "passes/manager/results.h"
#include "passes/pass.h"

/** A run, and every value on its way. */
typedef struct {
    KilnResults *results;
    GHashTable *values;      /* function, name and type, as text → its tensor and bound */
    const GPtrArray *inputs; /* borrowed; NULL: random ones, seeded by name */
    uint32_t
        roundings; /* applications of passes that may round one value: bounds are for so many */
} KilnRecord;

/** What kiln_results_on() @inputs computes, recorded, or kiln_results_of_graph() where they are
 * NULL; NULL with an error. */
KilnRecord *kiln_record_graph(const KilnFunction *function, const KilnTarget *target,
                              const GPtrArray *inputs, GError **error);
/** Without values: @results is taken over. */
KilnRecord *kiln_record_new(KilnResults *results);
void kiln_record_free(KilnRecord *record);

/** Runs @function, cut where it computes what it did in @before, and compares the results. */
gboolean kiln_record_compare_cut(const KilnRecord *before, const KilnFunction *function,
                                 const KilnTarget *target, KilnNumerics numerics, GError **error);

#endif
