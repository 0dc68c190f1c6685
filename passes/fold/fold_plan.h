/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which nodes are worth computing ahead of the runs, and when. It looks at types only,
 * before anything is computed.
 *
 *      w ── pack ── cast ── matmul
 *            │               │
 *            └─ transpose    x
 *
 * A node has an earliest stage (the constness of its operands) and the stages of its readers. If a
 * reader is later, the node is an *end*: its results are stored if the guards accept their size. If
 * they refuse, the node is computed again at the reader's stage, and its operands become ends. So a
 * chain folds up to the largest prefix that fits. A value with a constant and a varying reader
 * folds for each of them. Sizes are exact and overflow-checked. Splats need no storage: size 0. */
#ifndef KILN_PASSES_FOLD_FOLD_PLAN_H
#define KILN_PASSES_FOLD_FOLD_PLAN_H

#include "passes/pass.h"

enum {
    KILN_FOLD_SMALL = 4096, /* bytes: results up to this size always pay off */
};

/** Facts about the results of one node. */
typedef struct {
    int64_t bytes;           /* of all results; 0: they need no storage; -1: not known */
    int64_t base;            /* bytes of the constants behind it */
    const KilnValue *source; /* the largest of these */
    KilnConstness earliest;  /* VARYING: not ahead of a run */
    uint8_t stages;          /* a bit per KilnConstness: where the node is computed */
    bool splat;              /* all elements are equal, known without computing */
    bool grown;              /* a conversion enlarged it; nothing was computed since */
    bool repeats;            /* only repeats its operand */
    bool view;               /* of an unchanged constant */
    bool decides_shape;      /* integers that are a shape, or lead to one */
    bool end;                /* accepted, and later nodes read it */
    int64_t charge;          /* of an end: bytes against the budget */
} KilnFoldNode;

typedef struct KilnFoldPlan KilnFoldPlan;
struct KilnFoldPlan {
    KilnPassContext *context;
    KilnFunction *function;
    /* Guards; they count refusals. may_compute: the node may be computed ahead, if only for other
     * nodes ahead. may_store: its results may be stored for later readers. */
    bool (*may_compute)(KilnFoldPlan *plan, const KilnNode *node);
    bool (*may_store)(KilnFoldPlan *plan, const KilnNode *node);
    KilnConstness when[4]; /* by constness: the stage at which such nodes are computed */
    bool ahead;            /* into functions, not now */
    bool products_stay;    /* dequantized operands of products are not folded */
    bool literals_stay;    /* chains without arguments are no ends: refused before */
    int64_t max_bytes;
    float max_expansion;
    bool any;             /* result: there is work; false and not `ahead`: no stages */
    int64_t charged;      /* bytes against max_bytes so far */
    bool out_of_room;     /* max_bytes alone refused something */
    uint32_t n;           /* node ids are below this */
    KilnFoldNode *nodes;  /* by id */
    GHashTable *credited; /* sources whose bytes an end replaces */
};

/** Plans for the nodes of plan->function. Its marks must be up to date, and the fields above `any`
 * set. */
void kiln_fold_plan_make(KilnFoldPlan *plan);
void kiln_fold_plan_clear(KilnFoldPlan *plan);

/** True if the results of @node are or may be stored for later readers. Then it is an end. */
bool kiln_fold_plan_accepts(KilnFoldPlan *plan, const KilnNode *node);

static inline bool
kiln_fold_plan_has(const KilnFoldPlan *plan, const KilnNode *node, KilnConstness stage)
{
    return node->id < plan->n && (plan->nodes[node->id].stages >> stage & 1);
}

/** True if @value is known at any stage: a literal, or known integers. */
bool kiln_fold_is_literal(const KilnValue *value);

/** The node of the plan's function that has @use, itself or in its subgraphs. */
const KilnNode *kiln_fold_reader(const KilnFoldPlan *plan, const KilnUse *use);

/** True if the only subgraphs in @node are branches of an `if`. */
bool kiln_fold_holds_branches_only(const KilnNode *node);

/** True for ops that only move elements of operand 0, for any values of the others. */
bool kiln_op_only_moves(KilnOp op);

/** Moves the nodes of @plan, which was made with `ahead` for the module's entry, to
 * `compiletime_fold` and `runtime_fold`. Their results that the entry still reads become its last
 * arguments. Then drops folded tensors without readers. True if something changed. Notes each
 * folded tensor as @rule. */
bool kiln_fold_into_functions(const KilnFoldPlan *plan, const char *rule);

#endif
