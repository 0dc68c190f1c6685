/* SPDX-License-Identifier: Apache-2.0 */
/* Moves folded nodes from the entry into fold functions, and updates the table that connects them
 * (graph/module/folding.h). */
#ifndef KILN_PASSES_FOLD_FOLD_FUNCTIONS_H
#define KILN_PASSES_FOLD_FOLD_FUNCTIONS_H

#include "passes/fold/fold_plan.h"

/** Moves the nodes of @plan, which was made with `ahead` for the module's entry, to
 * `compiletime_fold` and `runtime_fold`. Their results that the entry still reads become its last
 * arguments. Then drops folded tensors without readers. True if something changed. Notes each
 * folded tensor as @rule. */
bool kiln_fold_into_functions(const KilnFoldPlan *plan, const char *rule);

#endif
