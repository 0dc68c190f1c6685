/* SPDX-License-Identifier: Apache-2.0 */
/* Options and results of folding the literals of a function. */
#ifndef KILN_PASSES_FOLD_EVALUATOR_H
#define KILN_PASSES_FOLD_EVALUATOR_H

#include "passes/fold/fold_plan.h"
#include "passes/pass.h"

typedef struct KilnEvaluator KilnEvaluator;
struct KilnEvaluator {
    KilnPassContext *context;
    const char *rule;         /* the name under which folds and failures count */
    const KilnTarget *target; /* NULL: computes only nodes that need no kernel */
    int threads;
    bool wide;         /* chains are computed in f64, i64 and u64, rounded once at their end */
    KilnFoldPlan plan; /* the plan of each function starts as a copy of it */
    /* True if there is room for the results of @node beside @live bytes of others. */
    bool (*may_hold)(KilnEvaluator *folder, KilnFoldPlan *plan, const KilnNode *node, int64_t live);
    bool changed;
    bool out_of_room;
    bool retyped;     /* shapes were found, and more may be literal */
    bool equal_found; /* computed elements turned out equal: they take no storage */
    int64_t peak;     /* bytes of buffers, without constants */
    GError *failure;  /* memory or time ran out */
};

/** Folds the literal nodes of @function, and of its subgraphs that read folded values. */
void kiln_fold_now(KilnEvaluator *folder, KilnFunction *function);

#endif
