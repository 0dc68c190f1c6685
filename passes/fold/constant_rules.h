/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that compute constants without a kernel: constant_rules.def. */
#ifndef KILN_PASSES_FOLD_CONSTANT_RULES_H
#define KILN_PASSES_FOLD_CONSTANT_RULES_H

#include "graph/graph.h"
#include "passes/fold/constant_pool.h"

typedef enum {
    KILN_RULE_DECLINES, /* run the kernel instead */
    KILN_RULE_STORES,   /* every result of the node has a buffer */
    KILN_RULE_FAILS,    /* memory is short: `error` is set */
} KilnRuleOutcome;

/** Computes the results of @node, whose operands all have buffers in @pool, and stores them there.
 * Runs on several threads, each with its own pool; writes to nothing except @pool. */
typedef KilnRuleOutcome (*KilnConstantRuleFn)(KilnConstantPool *pool, const KilnNode *node,
                                              GError **error);

/** NULL if @op has no rule. */
KilnConstantRuleFn kiln_constant_rule(KilnOp op);
/** True if the rule of @op also finds the shape of its result. */
bool kiln_constant_rule_finds_shape(KilnOp op);

#endif
