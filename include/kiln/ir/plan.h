/* SPDX-License-Identifier: Apache-2.0 */
/* Liveness and the memory plan: where in one arena each buffer lies, and bounds that tell how good
 * the plan is. */
#ifndef KILN_IR_PLAN_H
#define KILN_IR_PLAN_H

#include "ir/life.h"
#include "ir/target.h"

G_BEGIN_DECLS

/** Buffers that a plan places beside allocs and kernel scratch. */
typedef enum {
    KILN_PLAN_IO = 1 << 0, /* inputs, from the start to their last use, and outputs, from their
                              first use to the end */
} KilnPlanFlag;

typedef struct {
    KilnLife *lives;
    uint32_t n_lives;
    int64_t n_steps;
    int64_t sum;     /* no sharing */
    int64_t lb_node; /* the most operand bytes of one instruction: no order can beat it */
    int64_t lb_live; /* the most bytes alive at one step: no placement can beat it in this order */
    int64_t arena;
    bool proven_optimal; /* arena == lb_live, or exact search proved that nothing is lower */
    double plan_ms;
} KilnMemoryPlan;

/** Lives of all allocs (views count for their origin) and of kernel scratch on @target (NULL: no
 * scratch). */
KilnMemoryPlan *kiln_liveness(const KilnIRFunction *function, const KilnTarget *target,
                              int threads);
/** The same with known scratch: @scratch has its bytes, one entry per instruction that does work,
 * in order. */
KilnMemoryPlan *kiln_liveness_of(const KilnIRFunction *function, const int64_t *scratch,
                                 uint32_t flags);
/** The same with the additional lives of @flags (KilnPlanFlag). */
KilnMemoryPlan *kiln_liveness_with(const KilnIRFunction *function, const KilnTarget *target,
                                   int threads, uint32_t flags);
/** Aligned bytes of a buffer of its own; INT64_MAX or near it where that is too big. */
int64_t kiln_buffer_bytes_planned(const KilnBuffer *buffer);
/** Bytes of the scratch of @instr's kernel on @target, aligned; 0 where it needs none. */
int64_t kiln_instr_scratch_bytes(const KilnInstr *instr, const KilnTarget *target, int threads);
/** kiln_liveness(), then offsets by kiln_place(). Deterministic. Writes buffer->offset and
 * function->arena_bytes. */
KilnMemoryPlan *kiln_memory_plan(KilnIRFunction *function, const KilnTarget *target, int threads,
                                 GError **error);
/** The same with the additional lives of @flags (KilnPlanFlag). Only the lives have the offsets of
 * inputs and outputs. */
KilnMemoryPlan *kiln_memory_plan_with(KilnIRFunction *function, const KilnTarget *target,
                                      int threads, uint32_t flags, GError **error);
/** Restores a plan from the offsets in the text of @function. @scratch and @offsets have bytes and
 * places of kernel scratch: one per instruction that does work, in order. A negative offset means
 * no scratch. Places nothing anew. KILN_ERROR_INVALID where lives overlap or do not fit. */
KilnMemoryPlan *kiln_memory_plan_restore(const KilnIRFunction *function, const int64_t *scratch,
                                         const int64_t *offsets, GError **error);
void kiln_memory_plan_free(KilnMemoryPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnMemoryPlan, kiln_memory_plan_free)
/** The buffer's name, or "scratch of" and the instruction; to be freed. */
char *kiln_life_name(const KilnLife *life);

/** Bytes alive at each step of the plan; to be freed. The sum of sizes must not overflow. */
int64_t *kiln_memory_live_bytes(const KilnMemoryPlan *plan);

/** The first step at which the most bytes are alive. */
typedef struct {
    int64_t step; /* -1: there is none */
    int64_t bytes;
    const KilnInstr *instr;
} KilnMemoryPeak;
KilnMemoryPeak kiln_memory_peak(const KilnIRFunction *function, const KilnMemoryPlan *plan);

/** Why a plan does not fit. */
typedef struct {
    int64_t limit;
    KilnMemoryPeak peak;
    uint32_t *lives; /* indices of lives that do not fit together: the biggest at the peak, or those
                        that a search proved. The others may fit if one is left out */
    uint32_t n_lives;
    bool proven; /* false: nothing lower was found, and lives is empty */
} KilnMemoryExcess;
/** NULL where @plan fits into @limit bytes. */
KilnMemoryExcess *kiln_memory_excess(const KilnIRFunction *function, const KilnMemoryPlan *plan,
                                     int64_t limit);
void kiln_memory_excess_free(KilnMemoryExcess *excess);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnMemoryExcess, kiln_memory_excess_free)
/** Throws KILN_ERROR_LIMIT with all these facts. */
gboolean kiln_memory_excess_throw(const KilnMemoryExcess *excess, const KilnMemoryPlan *plan,
                                  GError **error);

G_END_DECLS

#endif
