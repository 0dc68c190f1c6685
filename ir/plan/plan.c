/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/plan.h"

#include "ir/plan/place.h"

KilnMemoryPlan *
kiln_memory_plan(KilnIRFunction *function, const KilnTarget *target, int threads, GError **error)
{
    return kiln_memory_plan_with(function, target, threads, 0, error);
}

KilnMemoryPlan *
kiln_memory_plan_with(KilnIRFunction *function, const KilnTarget *target, int threads,
                      uint32_t flags, GError **error)
{
    gint64 begin = g_get_monotonic_time();
    g_autoptr(KilnMemoryPlan) plan = kiln_liveness_with(function, target, threads, flags);
    if (plan->sum == INT64_MAX)
        return kiln_throw_null(error, KILN_ERROR_MEMORY, "@%s: its buffers exceed 2^63 bytes",
                               function->name);
    int64_t bound;
    plan->arena = kiln_place(plan->lives, plan->n_lives, KILN_PLACE_WORK, &bound);
    plan->proven_optimal = plan->arena == bound;
    for (guint i = 0; i < function->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (buffer && buffer->kind == KILN_BUFFER_ALLOC)
            buffer->offset = 0; /* what no instruction touches needs no place of its own */
    }
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        KilnBuffer *buffer = plan->lives[i].buffer;
        if (buffer && buffer->kind == KILN_BUFFER_ALLOC)
            buffer->offset = plan->lives[i].offset;
    }
    function->arena_bytes = plan->arena;
    function->stamp++;
    plan->plan_ms = (double)(g_get_monotonic_time() - begin) / 1000;
    return g_steal_pointer(&plan);
}
