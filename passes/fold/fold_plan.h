/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are worth computing ahead of the runs, and when: decided from types alone, before
 * anything is computed.
 *
 *      w ── pack ── cast ── matmul        a node has an earliest stage (the constness of what it
 *            │               │            reads) and the stages of its readers. Where a reader is
 *            └─ transpose    x            later, the node is an *end*: its results are stored, if
 *                                         the guards accept their size; else it is computed once
 *                                         more at the reader's stage, and its operands become ends.
 *
 * So a chain folds up to the largest prefix that fits, and a value with a constant and a varying
 * reader folds for each of them. Sizes are exact and overflow-checked; what needs no storage
 * (splats) has size 0. */
#ifndef KILN_PASSES_FOLD_FOLD_PLAN_H
#define KILN_PASSES_FOLD_FOLD_PLAN_H

#include "passes/fold/constness.h"
#include "passes/pass.h"

enum {
    KILN_FOLD_SMALL = 4096, /* bytes: results up to this size are always worth it */
};

/** What is known of the results of one node. */
typedef struct {
    int64_t bytes;           /* of all results; 0 where they need no storage; -1: not known */
    int64_t base;            /* bytes of the constants that it is computed from */
    const KilnValue *source; /* the largest of these */
    KilnConstness earliest;  /* VARYING: not ahead of a run */
    uint8_t stages;          /* a bit per KilnConstness: where the node is computed */
    bool splat;              /* all elements are equal, which takes no computing to see */
    bool grown;              /* a conversion made it bigger, and nothing was computed since */
    bool repeats;            /* only repeats its operand */
    bool view;               /* of a constant as it is */
    bool decides_shape;      /* integers that say, or lead to, what a shape is */
    bool end;                /* accepted: read by what is computed later */
    int64_t charge;          /* of an end: bytes against the budget */
} KilnFoldNode;

typedef struct KilnFoldPlan KilnFoldPlan;
struct KilnFoldPlan {
    KilnPassContext *context;
    KilnFunction *function;
    /* Whether a node may be computed ahead at all, if only for what is computed ahead too; and
     * whether its results may be stored for later readers. They count refusals. */
    bool (*may_compute)(KilnFoldPlan *plan, const KilnNode *node);
    bool (*may_store)(KilnFoldPlan *plan, const KilnNode *node);
    KilnConstness when[4]; /* by constness: the stage at which such nodes are computed */
    bool ahead;            /* into functions, not now */
    bool products_stay;    /* what a product reads stays dequantized from what it is */
    bool literals_stay;    /* chains without arguments are no ends: they were refused before */
    int64_t max_bytes;
    float max_expansion;
    bool any;             /* found: something to compute; without it, and not `ahead`, no stages */
    int64_t charged;      /* bytes against max_bytes so far */
    bool out_of_room;     /* something was refused by max_bytes alone */
    uint32_t n;           /* nodes that have an id below this */
    KilnFoldNode *nodes;  /* by id */
    GHashTable *credited; /* sources whose bytes an end has taken the place of */
};

/** Plans for the nodes of plan->function, whose marks are up to date; what stands
 * above `n` is set. */
void kiln_fold_plan_make(KilnFoldPlan *plan);
void kiln_fold_plan_clear(KilnFoldPlan *plan);

/** True where the results of @node are or may be stored for later readers: then it is an end. */
bool kiln_fold_plan_accepts(KilnFoldPlan *plan, const KilnNode *node);

static inline bool
kiln_fold_plan_has(const KilnFoldPlan *plan, const KilnNode *node, KilnConstness stage)
{
    return node->id < plan->n && (plan->nodes[node->id].stages >> stage & 1);
}

/** True where @value is at hand at any stage: a literal, or integers that are known. */
bool kiln_fold_is_literal(const KilnValue *value);

/** The node of the plan's function that @use is of, or whose subgraphs hold it. */
const KilnNode *kiln_fold_reader(const KilnFoldPlan *plan, const KilnUse *use);

/** True where all subgraphs in @node are those of an `if`. */
bool kiln_fold_holds_branches_only(const KilnNode *node);

/** Ops that put elements of operand 0 elsewhere, whatever the others are. */
bool kiln_op_only_moves(KilnOp op);

#endif
