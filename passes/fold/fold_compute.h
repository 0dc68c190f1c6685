/* SPDX-License-Identifier: Apache-2.0 */
/* Computes one node whose operands are constants: with its rule, as a splat, or on the target. */
#ifndef KILN_PASSES_FOLD_FOLD_COMPUTE_H
#define KILN_PASSES_FOLD_FOLD_COMPUTE_H

#include "exec/eval.h"
#include "ir/target.h"
#include "passes/fold/constant_pool.h"
#include "passes/fold/fold_plan.h"

/** The state of one thread. The rest of the folding is shared and only read. */
typedef struct {
    const KilnTarget *target; /* NULL: computes only nodes that need no kernel */
    bool wide;                /* chains are computed in f64, i64 and u64 */
    const KilnFoldPlan *plan;
    KilnConstantPool *pool;
    KilnLoweredNodes *lowered;
    int threads;      /* of the kernels */
    bool equal_found; /* set if computed elements turned out equal */
    bool ran;         /* set if a kernel of the target computed something */
    GError *failure;  /* set if memory or time ran out */
} KilnFoldWorker;

typedef enum {
    KILN_FOLD_STORED,  /* every result has a buffer in the pool */
    KILN_FOLD_LACKS,   /* lacks an operand, a kernel, or permission to run it */
    KILN_FOLD_REFUSED, /* the kernel refuses the operands: a run must say why */
} KilnFoldOutcome;

/** @may_run: there is room for a kernel's results. LACKS sets `failure` if out of memory or
 * time. */
KilnFoldOutcome kiln_fold_compute(KilnFoldWorker *worker, const KilnNode *node, bool may_run);

/** True if the elements of literal @value can be read. */
bool kiln_fold_is_readable(const KilnValue *value);
/** True if only a kernel can compute the results of @node. */
bool kiln_fold_takes_kernel(const KilnFoldPlan *plan, const KilnNode *node);

#endif
