/* SPDX-License-Identifier: Apache-2.0 */
/* A memory plan from what was stored of it: lives follow from the instructions, offsets are given,
 * and nothing is believed of them that is not checked. */
#include "ir/plan.h"

#include "graph/base/alloc.h"
#include "ir/verify/verify_priv.h"

static gboolean
throw_scratch(const KilnInstr *instr, int64_t offset, bool needed, GError **error)
{
    return kiln_throw(error, KILN_ERROR_INVALID, "%s: scratch at %" G_GINT64_FORMAT ": expected %s",
                      kiln_instr_label(instr), offset,
                      needed ? "an aligned offset in the arena" : "none");
}

/* Scratch is listed by step; lives are in the order of steps, scratch last of its own. */
static gboolean
place_scratch(KilnMemoryPlan *plan, const KilnIRFunction *function, const int64_t *offsets,
              GError **error)
{
    int64_t step = 0;
    uint32_t at = 0;
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        int64_t offset = offsets[step++];
        while (at < plan->n_lives && !plan->lives[at].scratch_of)
            at++;
        bool needed = at < plan->n_lives && plan->lives[at].scratch_of == instr;
        if (needed ? offset < 0 || offset % KILN_ALIGNMENT : offset >= 0)
            return throw_scratch(instr, offset, needed, error);
        if (needed)
            plan->lives[at++].offset = offset;
    }
    return TRUE;
}

KilnMemoryPlan *
kiln_memory_plan_restore(const KilnIRFunction *function, const int64_t *scratch,
                         const int64_t *offsets, GError **error)
{
    if (function->arena_bytes < 0)
        return kiln_throw_null(error, KILN_ERROR_INVALID, "@%s: expected a memory plan, found none",
                               function->name);
    g_autoptr(KilnMemoryPlan) plan = kiln_liveness_of(function, scratch, 0);
    plan->arena = function->arena_bytes;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (plan->lives[i].buffer)
            plan->lives[i].offset = plan->lives[i].buffer->offset;
    }
    if (!place_scratch(plan, function, offsets, error) || !kiln_verify_lives(function, plan, error))
        return NULL;
    return g_steal_pointer(&plan);
}
