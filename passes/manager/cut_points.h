/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the values that a function computes before and after a pass, one by one.
 *
 * A rewrite of class U or QT may move a value by a rounding or a step. Values computed from it may
 * move by many: a rescale by 8 makes eight steps of one, an argmax takes another index. If results
 * differ by more than the class allows, the function runs again with cuts. A cut replaces a value
 * by the value of the same name and type before the pass, if both are within the bound of the
 * class. Between two cuts only the difference of one rewrite remains. A value with a derived name
 * counts as the value that the same reader had as the same operand before the pass. A value in a
 * loop counts as that of the same iteration.
 *
 *      before   %q ── 3 ──▶ %r = rescale ×8 ── 24 ──▶ %y          after, %q made in another way:
 *                                                              4 ──▶ 32: eight steps
 *                                            cut at %q         4 → 3 ──▶ 24: equal
 *
 * In class QT, elements that differ by a step at a tie count as equal. At a tie, the real lies in
 * the middle between two stored numbers, within its rounding. The real must be known on one side.
 * kiln_numerics_ties() limits the number of other differences.
 *
 * The bound of a value is that of the class, with the step of the operands of its node. A value out
 * of bounds is not replaced, nor are the values computed from it. So a wrong scale or zero point
 * still reaches the results. */
#ifndef KILN_PASSES_MANAGER_CUT_POINTS_H
#define KILN_PASSES_MANAGER_CUT_POINTS_H

#include "graph/arena.h"
#include "graph/binding.h"
#include "passes/manager/results.h"
#include "passes/pass.h"

/** The results of a run and all values computed on the way. */
typedef struct {
    KilnResults *results;
    GHashTable *values;      /* function, name, type and iteration, as text → tensor and step */
    GHashTable *times;       /* the same without iteration → how many of it */
    const GPtrArray *inputs; /* borrowed; NULL: random ones, seeded by name */
    KilnArena *arena;        /* of the numbers */
    KilnDimBinding numbers;  /* of open dims, as @inputs give them */
    uint32_t roundings;      /* applications that may round one value; scales the bounds */
} KilnRecord;

/** Records kiln_results_on() @inputs, or kiln_results_of_graph() if @inputs is NULL. NULL with
 * @error on failure. */
KilnRecord *kiln_record_graph(const KilnFunction *function, const KilnTarget *target,
                              const GPtrArray *inputs, GError **error);
/** Makes a record without values. Takes @results over. */
KilnRecord *kiln_record_new(KilnResults *results);
void kiln_record_free(KilnRecord *record);

/** Runs @function with cuts at the values of @before and compares the results. */
gboolean kiln_record_compare_cut(const KilnRecord *before, const KilnFunction *function,
                                 const KilnTarget *target, KilnNumerics numerics, GError **error);

#endif
