/* SPDX-License-Identifier: Apache-2.0 */
/* Computes one node whose operands are constants: with its rule, as a splat, or on the target. */
#ifndef KILN_PASSES_FOLD_FOLD_COMPUTE_H
#define KILN_PASSES_FOLD_FOLD_COMPUTE_H

#include "exec/eval.h"
#include "passes/fold/constant_pool.h"
#include "passes/fold/fold_plan.h"

/** What one thread computes with. The rest of the folding is shared and only read. */
typedef struct {
    const KilnTarget *target; /* NULL: only what needs no kernel is computed */
    bool wide;                /* chains are computed in f64, i64 and u64 */
    const KilnFoldPlan *plan;
    KilnConstantPool *pool;
    KilnLoweredNodes *lowered;
    int threads;      /* of the kernels */
    bool equal_found; /* set where computed elements turned out equal */
    bool ran;         /* set where a kernel of the target computed something */
    GError *failure;  /* set where memory or time ran out */
} KilnFoldWorker;

typedef enum {
    KILN_FOLD_STORED,  /* every result has a buffer in the pool */
    KILN_FOLD_LACKS,   /* an operand, a kernel, or leave to run it */
    KILN_FOLD_REFUSED, /* the kernel refuses the operands: a run is to say why */
} KilnFoldOutcome;

/** @may_run: there is room for what a kernel makes. LACKS with `failure` set where memory or
 * time ran out.
 */
KilnFoldOutcome kiln_fold_compute(KilnFoldWorker *worker, const KilnNode *node, bool may_run);

/** True where elements of literal @value can be computed with. */
bool kiln_fold_is_readable(const KilnValue *value);
/** True where nothing but running a kernel finds the results of @node. */
bool kiln_fold_takes_kernel(const KilnFoldPlan *plan, const KilnNode *node);

#endif
