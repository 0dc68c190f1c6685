/* SPDX-License-Identifier: Apache-2.0 */
/* Liveness and the memory plan: where in one arena each buffer lies, and bounds that tell how good
 * the plan is. */
#ifndef KILN_IR_PLAN_H
#define KILN_IR_PLAN_H

#include "ir/target.h"

/** A buffer's life: steps [first, last] of the instructions that do work, numbered from 0, both
 * included. */
typedef struct {
    KilnBuffer *buffer; /* an alloc; NULL: scratch of one instruction */
    const KilnInstr *scratch_of;
    int64_t first, last;
    int64_t size;   /* aligned up to KILN_ALIGNMENT */
    int64_t offset; /* set by the plan */
} KilnLife;

typedef struct {
    KilnLife *lives;
    uint32_t n_lives;
    int64_t n_steps;
    int64_t sum;     /* no sharing */
    int64_t lb_node; /* the most that one instruction has as operands: no order can beat it */
    int64_t lb_live; /* the most that lives at one step: no placement can beat it in this order */
    int64_t arena;
    bool proven_optimal; /* arena == lb_live, or exact search proved that nothing is lower */
    double plan_ms;
} KilnMemoryPlan;

/** Lives of all allocs (views count for their origin) and of kernel scratch on @target (NULL: no
 * scratch). */
KilnMemoryPlan *kiln_liveness(const KilnIRFunction *function, const KilnTarget *target,
                              int threads);
/** kiln_liveness(), then offsets by kiln_place(). Deterministic. Writes
 * buffer->offset and function->arena_bytes. */
KilnMemoryPlan *kiln_memory_plan(KilnIRFunction *function, const KilnTarget *target, int threads,
                                 GError **error);
/** Takes the offsets out of @function again: for who changes the order or the lives of buffers. */
void kiln_memory_plan_forget(KilnIRFunction *function);
void kiln_memory_plan_free(KilnMemoryPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnMemoryPlan, kiln_memory_plan_free)

#endif
