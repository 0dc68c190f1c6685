/* SPDX-License-Identifier: Apache-2.0 */
/* Computes literal nodes, and makes constants of results that the rest of the function reads. */
#ifndef KILN_PASSES_FOLD_FOLD_EVALUATE_H
#define KILN_PASSES_FOLD_FOLD_EVALUATE_H

#include "graph/attr.h"
#include "passes/fold/evaluator.h"

/** Folds the literal nodes of @function, and of its subgraphs that read folded values. */
void kiln_fold_now(KilnEvaluator *folder, KilnFunction *function);

#endif
