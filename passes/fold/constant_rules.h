/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that compute constants otherwise than by running a kernel: constant_rules.def. */
#ifndef KILN_PASSES_FOLD_CONSTANT_RULES_H
#define KILN_PASSES_FOLD_CONSTANT_RULES_H

#include "passes/fold/constant_pool.h"

typedef enum {
    KILN_RULE_DECLINES, /* the kernel is to be run */
    KILN_RULE_STORES,   /* every result of the node has a buffer */
    KILN_RULE_FAILS,    /* memory is short: `error` is set */
} KilnRuleOutcome;

/** Finds the results of @node, whose operands all have buffers in @pool, and stores them there.
 * Runs on several threads at a time, with a pool each: nothing but @pool is written to. */
typedef KilnRuleOutcome (*KilnConstantRuleFn)(KilnConstantPool *pool, const KilnNode *node,
                                              GError **error);

/** NULL where @op has no rule. */
KilnConstantRuleFn kiln_constant_rule(KilnOp op);
/** True where the rule of @op finds the shape of its result too. */
bool kiln_constant_rule_finds_shape(KilnOp op);

#endif
