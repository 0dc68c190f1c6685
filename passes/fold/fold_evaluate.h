/* SPDX-License-Identifier: Apache-2.0 */
/* Computes what is literal now, and makes constants of what the rest of the function reads. */
#ifndef KILN_PASSES_FOLD_FOLD_EVALUATE_H
#define KILN_PASSES_FOLD_FOLD_EVALUATE_H

#include "passes/fold/evaluator.h"

/** Folds the literal nodes of @function and, where they read what was folded, of its subgraphs. */
void kiln_fold_now(KilnEvaluator *folder, KilnFunction *function);

#endif
