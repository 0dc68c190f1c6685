/* SPDX-License-Identifier: Apache-2.0 */
/* A `loop` or `scan` as passes look at it: its body, and which operands, arguments and results
 * belong together.
 *
 *     operands             first | carried | scanned
 *     arguments            first | carried | scanned
 *     `return` of the body asks | carried | stacked
 *     results                     carried | stacked */
#ifndef KILN_PASSES_QUERY_LOOP_VIEW_H
#define KILN_PASSES_QUERY_LOOP_VIEW_H

#include "graph/graph.h"
#include "graph/type.h"
#include "passes/pass.h"

typedef struct {
    KilnNode *node;
    KilnFunction *body;
    uint32_t first;   /* operands in front of the carried ones */
    uint32_t asks;    /* 1 where the body returns a condition first */
    uint32_t carried; /* values */
    uint32_t scanned; /* operands */
} KilnLoopView;

/** What a pass does with a loop. */
typedef gboolean (*KilnLoopVisit)(KilnPassContext *context, const KilnLoopView *loop, bool *changed,
                                  GError **error);

/** Calls @visit for each loop and scan of @function that is whole. *@changed tells if one changed.
 */
gboolean kiln_loops_visit(KilnFunction *function, KilnPassContext *context, KilnLoopVisit visit,
                          bool *changed, GError **error);
/** Bytes of @type with likely numbers in place of open dims, for costs. */
double kiln_likely_bytes(const KilnType *type);
/** True where @node, or a node of its subgraphs, does more than give results. */
bool kiln_node_has_effect(const KilnNode *node);
/** False where @node is no loop and no scan, or lacks an operand that it must have. */
bool kiln_loop_view(KilnNode *node, KilnLoopView *out);
/** What the body gets as carried value or scanned operand @k. */
KilnValue *kiln_loop_argument(const KilnLoopView *loop, uint32_t k);
/** Operand @k of these. */
KilnValue *kiln_loop_operand(const KilnLoopView *loop, uint32_t k);
/** What the body returns for result @r. */
KilnValue *kiln_loop_returned(const KilnLoopView *loop, uint32_t r);
/** True where @value is an argument of the body, or a node of it makes it. */
bool kiln_loop_makes(const KilnLoopView *loop, const KilnValue *value);
/** The number of the iteration, an argument; NULL for a scan. */
KilnValue *kiln_loop_number(const KilnLoopView *loop);
/** True where carried value @k has one type in all iterations, before them and behind them. */
bool kiln_loop_keeps_type(const KilnLoopView *loop, uint32_t k);
/** True where a scan begins with the last element of its first operand. */
bool kiln_loop_scan_reverse(const KilnLoopView *loop);
/** Where result @r, which is stacked, has the dim of the iterations. */
int kiln_loop_stack_axis(const KilnLoopView *loop, uint32_t r);
/** True where the first iteration writes the last element of it. */
bool kiln_loop_stack_reverse(const KilnLoopView *loop, uint32_t r);
/** The values of the body that are computed from carried value @k of the same iteration, and this
 * itself: KilnValue*. */
GHashTable *kiln_loop_readers(const KilnLoopView *loop, uint32_t k);
/** Likely bytes of all operands and of the results that are read. */
double kiln_loop_bytes(const KilnLoopView *loop);
/** True where the carried value @k decides one of @values, @n of the body, in the same iteration or
 * in a later one; or what has an effect, or when the loop ends. */
bool kiln_loop_needs(const KilnLoopView *loop, KilnValue *const *values, uint32_t n, uint32_t k);

#endif
