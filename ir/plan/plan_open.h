/* SPDX-License-Identifier: Apache-2.0 */
/* Memory plans of open functions: for one binding of the names, or for all that their bounds allow.
 */
#ifndef KILN_IR_PLAN_PLAN_OPEN_H
#define KILN_IR_PLAN_PLAN_OPEN_H

#include "graph/binding.h"
#include "ir/plan.h"

typedef struct {
    KilnIRFunction *function; /* a copy that stands at the binding */
    KilnMemoryPlan *plan;     /* has a life for the scratch of each instruction; it may be empty */
    KilnDimBinding *binding;  /* that of the function */
    int64_t n_asked; /* of a plan for all numbers: how many of them kernels were asked for scratch
                        memory at */
    bool asked_all;  /* these are all numbers: no run wants more */
} KilnOpenPlan;

/** The plan of @function, which is open, at @binding: placed as a session places it. NULL with
 * KILN_ERROR_SHAPE where the function cannot stand there, KILN_ERROR_MEMORY where it is too big. */
KilnOpenPlan *kiln_open_plan_at(const KilnIRFunction *function, const KilnDimBinding *binding,
                                const KilnTarget *target, int threads, uint32_t flags,
                                GError **error);
/** The plan for all numbers within the bounds of the names. Each buffer has a place of the most
 * bytes that its expression can be. Scratch has the most bytes of all bindings, where there are few
 * and no region is compiled for them, else of several ones. That proves nothing, so a session
 * compares. The function stands at the upper bounds. NULL where a name has no
 * upper bound, an expression has none, or the sum is too big. */
KilnOpenPlan *kiln_open_plan_most(const KilnIRFunction *function, const KilnTarget *target,
                                  int threads, uint32_t flags);
void kiln_open_plan_free(KilnOpenPlan *open);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnOpenPlan, kiln_open_plan_free)

#endif
