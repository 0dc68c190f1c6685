/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of buffers: one walk over the instructions that do work. Views count for their origin, so
 * that buffers which alias are one buffer; kernel scratch lives for one step. */
#include "ir/plan.h"

#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "ir/open.h"

#include <string.h>

static int64_t
aligned(int64_t bytes)
{
    size_t size = kiln_align_up((size_t)MAX(bytes, 0));
    return size > (size_t)INT64_MAX ? INT64_MAX & ~(int64_t)(KILN_ALIGNMENT - 1) : (int64_t)size;
}

int64_t
kiln_buffer_bytes_planned(const KilnBuffer *buffer)
{
    return aligned(kiln_type_bytes(&buffer->type));
}

/* The life of @buffer reaches to @step; it begins there if this is its first use. */
static void
touch(GArray *lives, uint32_t *life_of, KilnBuffer *buffer, int64_t step)
{
    if (life_of[buffer->id] == UINT32_MAX) {
        KilnLife life = {
            .buffer = buffer, .first = step, .last = step, .size = kiln_buffer_bytes_planned(buffer)
        };
        life_of[buffer->id] = lives->len;
        g_array_append_val(lives, life);
    }
    g_array_index(lives, KilnLife, life_of[buffer->id]).last = step;
}

static bool
is_planned(const KilnBuffer *origin, uint32_t flags)
{
    bool io = origin->kind == KILN_BUFFER_INPUT || origin->kind == KILN_BUFFER_OUTPUT;
    return origin->kind == KILN_BUFFER_ALLOC || (io && flags & KILN_PLAN_IO);
}

/* What is known of lives on the walk; arrays by buffer id. */
typedef struct {
    GArray *lives;
    uint32_t *life_of;
    int64_t *counted; /* the last step whose bytes the buffer was counted among; -1: none */
    uint32_t flags;
} Walk;

/* All planned buffers of @instr live at @step; the aligned bytes of each, counted once. */
static int64_t
touch_operands(Walk *walk, const KilnInstr *instr, int64_t step)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        KilnBuffer *origin = buffer ? kiln_buffer_origin(buffer) : NULL;
        if (!origin || !is_planned(origin, walk->flags) || walk->counted[origin->id] == step)
            continue;
        touch(walk->lives, walk->life_of, origin, step);
        walk->counted[origin->id] = step;
        uint32_t life = walk->life_of[origin->id];
        bytes = kiln_add_capped(bytes, g_array_index(walk->lives, KilnLife, life).size);
    }
    return bytes;
}

int64_t
kiln_instr_scratch_bytes(const KilnInstr *instr, const KilnTarget *target, int threads)
{
    const KilnKernel *kernel = target ? kiln_target_find(target, instr) : NULL;
    if (!kernel)
        return 0;
    const uint32_t form = kiln_kernel_form(kernel, instr);
    size_t bytes = kiln_kernel_scratch(kernel, instr, form, false, threads);
    return aligned((int64_t)MIN(bytes, (size_t)INT64_MAX));
}

int64_t *
kiln_memory_live_bytes(const KilnMemoryPlan *plan)
{
    int64_t *live = g_new0(int64_t, plan->n_steps + 1);
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        live[plan->lives[i].first] += plan->lives[i].size;
        live[plan->lives[i].last + 1] -= plan->lives[i].size;
    }
    for (int64_t step = 1; step < plan->n_steps; step++)
        live[step] += live[step - 1];
    return live;
}

static int64_t
most_alive(const KilnMemoryPlan *plan)
{
    if (plan->sum == INT64_MAX)
        return plan->sum;
    g_autofree int64_t *live = kiln_memory_live_bytes(plan);
    int64_t most = 0;
    for (int64_t step = 0; step < plan->n_steps; step++)
        most = MAX(most, live[step]);
    return most;
}

static void
touch_all(GArray *lives, uint32_t *life_of, const GPtrArray *buffers, int64_t step)
{
    for (guint i = 0; i < buffers->len; i++)
        touch(lives, life_of, g_ptr_array_index(buffers, i), step);
}

/* Settled results are there from run to run. */
static void
keep_all(GArray *lives, const uint32_t *life_of, const KilnOpen *open, int64_t last)
{
    for (guint i = 0; open && i < open->kept->len; i++) {
        const KilnBuffer *kept = g_ptr_array_index(open->kept, i);
        KilnLife *life = &g_array_index(lives, KilnLife, life_of[kept->id]);
        life->first = 0;
        life->last = last;
    }
}

KilnMemoryPlan *
kiln_liveness(const KilnIRFunction *function, const KilnTarget *target, int threads)
{
    return kiln_liveness_with(function, target, threads, 0);
}

KilnMemoryPlan *
kiln_liveness_with(const KilnIRFunction *function, const KilnTarget *target, int threads,
                   uint32_t flags)
{
    g_autofree int64_t *scratch = g_new(int64_t, function->n_instrs + 1);
    int64_t step = 0;
    kiln_foreach_instr (instr, function) {
        if (!kiln_instr_is_bookkeeping(instr))
            scratch[step++] = kiln_instr_scratch_bytes(instr, target, threads);
    }
    return kiln_liveness_of(function, scratch, flags);
}

KilnMemoryPlan *
kiln_liveness_of(const KilnIRFunction *function, const int64_t *scratch, uint32_t flags)
{
    KilnMemoryPlan *plan = g_new0(KilnMemoryPlan, 1);
    GArray *lives = g_array_new(FALSE, TRUE, sizeof(KilnLife));
    gsize n_buffers = (gsize)function->buffers->len + 1;
    g_autofree uint32_t *life_of = g_new(uint32_t, n_buffers);
    g_autofree int64_t *counted = g_new(int64_t, n_buffers);
    memset(life_of, 0xFF, sizeof *life_of * n_buffers);
    memset(counted, 0xFF, sizeof *counted * n_buffers);
    Walk walk = { lives, life_of, counted, flags };
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        int64_t step = plan->n_steps++;
        if (step == 0 && flags & KILN_PLAN_IO)
            touch_all(lives, life_of, function->inputs, 0);
        int64_t bytes = touch_operands(&walk, instr, step);
        int64_t own = aligned(scratch[step]);
        if (own) {
            KilnLife life = { .scratch_of = instr, .first = step, .last = step, .size = own };
            g_array_append_val(lives, life);
        }
        plan->lb_node = MAX(plan->lb_node, kiln_add_capped(bytes, own));
    }
    if (flags & KILN_PLAN_IO && plan->n_steps)
        touch_all(lives, life_of, function->outputs, plan->n_steps - 1);
    keep_all(lives, life_of, function->open, plan->n_steps - 1);
    plan->n_lives = lives->len;
    plan->lives = (KilnLife *)g_array_free(lives, FALSE);
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        plan->lives[i].offset = -1;
        plan->sum = kiln_add_capped(plan->sum, plan->lives[i].size);
    }
    plan->lb_live = most_alive(plan);
    plan->arena = -1;
    return plan;
}

void
kiln_memory_plan_free(KilnMemoryPlan *plan)
{
    if (!plan)
        return;
    g_free(plan->lives);
    g_free(plan);
}
