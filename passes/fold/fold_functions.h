/* SPDX-License-Identifier: Apache-2.0 */
/* Takes what a plan computes ahead out of the entry and into fold functions, and keeps the table
 * that says who feeds whom (graph/module/folding.h). */
#ifndef KILN_PASSES_FOLD_FOLD_FUNCTIONS_H
#define KILN_PASSES_FOLD_FOLD_FUNCTIONS_H

#include "passes/fold/fold_plan.h"

/** Moves the nodes of @plan, which is for the module's entry and made with `ahead`, to
 * `compiletime_fold` and `runtime_fold`; what the entry still reads of them become arguments behind
 * its others. Then drops folded tensors that nothing reads any more. True where something changed;
 * each tensor that was folded is noted as @rule. */
bool kiln_fold_into_functions(const KilnFoldPlan *plan, const char *rule);

#endif
