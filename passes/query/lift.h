/* SPDX-License-Identifier: Apache-2.0 */
/* Values of all iterations at once. What an iteration computes from scanned operands, from what
 * comes from around the loop and from the number of the iteration alone needs no loop: one node
 * computes it for all iterations, along a new dim 0.
 *
 *     scan x: f32[n,4] {                     x: f32[n,4]
 *       a = exp(row)             =>          A = exp(x)
 *       b = mul(a, w)                        B = mul(A, w)
 *     }                                      b of all iterations: B
 *
 * Row k of dim 0 belongs to element k of the scanned operands. */
#ifndef KILN_PASSES_QUERY_LIFT_H
#define KILN_PASSES_QUERY_LIFT_H

#include "graph/dim.h"
#include "graph/graph.h"
#include "graph/type.h"
#include "passes/query/loop_view.h"

typedef struct {
    const KilnLoopView *loop;
    const KilnDim *length; /* of dim 0; NULL: nothing lifts */
    bool reverse;          /* the last element comes first */
    GHashTable *lifted; /* KilnValue* of the body that lift → KilnValue* around, or itself until
                           it is built */
} KilnLift;

/** Finds the values that lift. @reverse: only operands that are scanned backwards count. */
void kiln_lift_init(KilnLift *lift, const KilnLoopView *loop, bool reverse);
void kiln_lift_clear(KilnLift *lift);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnLift, kiln_lift_clear)
/** Finds the values that lift if @value and @other (NULL: none), of the body, do. kiln_lift_give()
 * has to follow before one of them is built. */
void kiln_lift_assume(KilnLift *lift, KilnValue *value, KilnValue *other);
void kiln_lift_give(KilnLift *lift, KilnValue *value, KilnValue *stacked);
/** True where @value, of the body, lifts. */
bool kiln_lift_can(const KilnLift *lift, const KilnValue *value);
/** The type of @value, which lifts, in all iterations. */
KilnType kiln_lift_type(const KilnLift *lift, const KilnValue *value);
/** The likely bytes of the biggest value that is built for @value, which lifts. */
double kiln_lift_bytes(const KilnLift *lift, KilnValue *value);
/** @value, which lifts, in all iterations, in front of the loop. NULL fails. */
KilnValue *kiln_lift_build(KilnLift *lift, KilnValue *value, GError **error);
/** True where something reads result @r, which is stacked, and it lifts. */
bool kiln_lift_can_stack(const KilnLift *lift, uint32_t r);
/** Its readers read what its value lifts to. False fails. */
bool kiln_lift_replace_stack(KilnLift *lift, uint32_t r, GError **error);
/** The same for all stacked results that lift and are computed from state @k. */
bool kiln_lift_replace_stacks(KilnLift *lift, uint32_t k, GError **error);
/** True where something reads state @k behind the loop, or a stacked result that is computed from
 * it. */
bool kiln_lift_is_read(const KilnLift *lift, uint32_t k);
/** True where results that do not lift, and are none of the @n @states, need one of these. */
bool kiln_lift_leaves_need(const KilnLift *lift, const uint32_t *states, uint32_t n);
/** @value with its dim @from at place @to, in front of @before. */
KilnValue *kiln_dim_move_build(KilnNode *before, KilnValue *value, int from, int to,
                               GError **error);

#endif
