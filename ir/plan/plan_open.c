/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/plan/plan_open.h"

#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/size.h"
#include "ir/open.h"
#include "ir/plan/place.h"

void
kiln_open_plan_free(KilnOpenPlan *open)
{
    if (!open)
        return;
    kiln_memory_plan_free(open->plan);
    kiln_ir_function_free(open->function);
    g_free(open);
}

/* --- sizes --- */

/* The most bytes of a buffer of @type for all bindings; -1 where nobody knows. */
static int64_t
most_bytes(const KilnType *type)
{
    KilnSize size = kiln_type_size_bytes(type);
    int64_t least, most = size.n;
    if (size.dim)
        kiln_dim_range(size.dim, &least, &most);
    return size.lost || most > INT64_MAX - KILN_ALIGNMENT ? -1
                                                          : (int64_t)kiln_align_up((size_t)most);
}

/* Lives with a place for the scratch of each instruction, which has the bytes that it needs now. */
static KilnMemoryPlan *
lives_of(const KilnIRFunction *function, const KilnTarget *target, int threads, uint32_t flags)
{
    g_autoptr(KilnMemoryPlan) sizes = kiln_liveness_with(function, target, threads, flags);
    g_autofree int64_t *one = g_new(int64_t, (gsize)sizes->n_steps + 1);
    for (int64_t step = 0; step < sizes->n_steps; step++)
        one[step] = 1;
    KilnMemoryPlan *plan = kiln_liveness_of(function, one, flags);
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        KilnLife *life = &plan->lives[i];
        if (life->scratch_of)
            life->size = kiln_instr_scratch_bytes(life->scratch_of, target, threads);
    }
    return plan;
}

/* The bytes of the operands of @instr; @counted has, per buffer, the last step that counted it. */
static int64_t
operand_bytes(const KilnInstr *instr, const int64_t *size_of, int64_t *counted, int64_t step)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        uint32_t id = buffer ? kiln_buffer_origin(buffer)->id : 0;
        if (!buffer || counted[id] == step)
            continue;
        counted[id] = step;
        bytes += size_of[id];
    }
    return bytes;
}

/* The most bytes of the operands and the scratch of one instruction. */
static int64_t
most_of_one(const KilnMemoryPlan *plan, const KilnIRFunction *function)
{
    gsize n = (gsize)function->buffers->len + 1;
    g_autofree int64_t *scratch = g_new0(int64_t, (gsize)plan->n_steps + 1);
    g_autofree int64_t *size_of = g_new0(int64_t, n);
    g_autofree int64_t *counted = g_new0(int64_t, n);
    int64_t most = 0, step = 0;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        if (life->buffer)
            size_of[life->buffer->id] = life->size;
        else
            scratch[life->first] = life->size;
    }
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        int64_t bytes = operand_bytes(instr, size_of, counted, step + 1) + scratch[step];
        most = MAX(most, bytes);
        step++;
    }
    return most;
}

/* False where the sum of all sizes is too big. */
static bool
add_up(KilnMemoryPlan *plan, const KilnIRFunction *function)
{
    plan->sum = 0;
    for (uint32_t i = 0; i < plan->n_lives; i++)
        plan->sum = kiln_add_capped(plan->sum, plan->lives[i].size);
    if (plan->sum == INT64_MAX)
        return false;
    g_autofree int64_t *pressure = g_new(int64_t, (gsize)plan->n_lives + 1);
    plan->lb_live = kiln_place_pressure(plan->lives, plan->n_lives, pressure);
    plan->lb_node = most_of_one(plan, function);
    return true;
}

/* --- plans --- */

KilnOpenPlan *
kiln_open_plan_at(const KilnIRFunction *function, const KilnDimBinding *binding,
                  const KilnTarget *target, int threads, uint32_t flags, GError **error)
{
    gint64 begin = g_get_monotonic_time();
    g_autoptr(KilnOpenPlan) open = g_new0(KilnOpenPlan, 1);
    open->function = kiln_open_copy_at(function, binding, error);
    if (!open->function)
        return NULL;
    kiln_open_compile_regions(open->function, binding, target, threads);
    KilnMemoryPlan *plan = open->plan = lives_of(open->function, target, threads, flags);
    open->binding = kiln_dim_binding_copy(open->function->arena, binding);
    if (!add_up(plan, open->function))
        return kiln_throw_null(error, KILN_ERROR_MEMORY, "@%s: its buffers exceed 2^63 bytes",
                               function->name);
    KilnFirstFit *fit = kiln_first_fit_new(plan->lives, plan->n_lives);
    plan->arena = kiln_first_fit_place(fit);
    kiln_first_fit_free(fit);
    plan->proven_optimal = plan->arena == plan->lb_live;
    plan->plan_ms = (double)(g_get_monotonic_time() - begin) / 1000;
    return g_steal_pointer(&open);
}

/* False where a name has no upper bound. Names have their bound over 2^@halvings, or the least
 * number that is allowed. *@out_least says that all have that. */
static bool
bind_below(const KilnIRFunction *function, KilnDimBinding *binding, int halvings, bool *out_least)
{
    *out_least = true;
    for (uint32_t i = 0; i < binding->n; i++) {
        KilnDimFacts facts;
        kiln_dim_facts(kiln_dim_name(function->module->dims, binding->names[i].name), &facts);
        if (facts.hi == KILN_DIM_MOST)
            return false;
        int64_t number = facts.hi >> halvings;
        binding->names[i].number = MAX(number - number % facts.divisor, facts.lo);
        *out_least &= binding->names[i].number == facts.lo;
    }
    return true;
}

enum {
    ASKED_CALLS = 1 << 14 /* kernels that are asked for scratch memory at all numbers */
};

static KilnDimFacts
facts_of(const KilnIRFunction *function, const char *name)
{
    KilnDimFacts facts = { 0 };
    kiln_dim_facts(kiln_dim_name(function->module->dims, name), &facts);
    return facts;
}

/* How many bindings there are; INT64_MAX where there are too many to count. */
static int64_t
count_bindings(const KilnIRFunction *function, const KilnDimBinding *binding)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < binding->n; i++) {
        const KilnDimFacts facts = facts_of(function, binding->names[i].name);
        if (__builtin_mul_overflow(n, (facts.hi - facts.lo) / facts.divisor + 1, &n))
            return INT64_MAX;
    }
    return n;
}

/* The next of all bindings; false behind the last one, which is that of the bounds. */
static bool
bind_next(const KilnIRFunction *function, KilnDimBinding *binding)
{
    for (uint32_t i = 0; i < binding->n; i++) {
        const KilnDimFacts facts = facts_of(function, binding->names[i].name);
        binding->names[i].number += facts.divisor;
        if (binding->names[i].number <= facts.hi)
            return true;
        binding->names[i].number = facts.lo;
    }
    return false;
}

/* Regions are compiled for the bounds alone. */
static void
ask_at(const KilnIRFunction *function, const KilnDimBinding *binding, const KilnTarget *target,
       int threads, int64_t *most)
{
    g_autoptr(KilnIRFunction) copy = kiln_open_copy_at(function, binding, NULL);
    int64_t step = 0;
    if (!copy)
        return;
    kiln_open_compile_regions(copy, binding, NULL, threads);
    kiln_foreach_instr (instr, copy) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        most[step] = MAX(most[step], kiln_instr_scratch_bytes(instr, target, threads));
        step++;
    }
}

static bool
calls_regions(const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_call)
            return true;
    }
    return false;
}

/* Kernels may want more scratch for fewer rows: the most of all bindings where these are few, else
 * of several ones, from the bounds down. */
static void
widen_scratch(KilnOpenPlan *open, const KilnIRFunction *function, const KilnTarget *target,
              int threads)
{
    KilnMemoryPlan *plan = open->plan;
    KilnDimBinding *binding = kiln_dim_binding_copy(function->arena, function->open->binding);
    g_autofree int64_t *most = g_new0(int64_t, (gsize)plan->n_steps + 1);
    const int64_t n = count_bindings(function, binding);
    bool all = n <= ASKED_CALLS / MAX(plan->n_steps, 1), least = false;
    open->asked_all = all && !calls_regions(function);
    open->n_asked = 1; /* the bounds */
    for (uint32_t i = 0; all && i < binding->n; i++)
        binding->names[i].number = facts_of(function, binding->names[i].name).lo;
    for (int halvings = 1; !least; halvings++) {
        if (!all)
            bind_below(function, binding, halvings, &least);
        ask_at(function, binding, target, threads, most);
        open->n_asked++;
        if (all)
            least = !bind_next(function, binding);
    }
    if (all)
        open->n_asked = n;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        KilnLife *life = &plan->lives[i];
        if (life->scratch_of)
            life->size = MAX(life->size, most[life->first]);
    }
}

/* @expressions numbers its buffers as the function of the plan does. False where one has no bound.
 */
static bool
widen_buffers(KilnMemoryPlan *plan, const KilnIRFunction *expressions)
{
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        KilnLife *life = &plan->lives[i];
        if (!life->buffer)
            continue;
        const KilnBuffer *buffer = g_ptr_array_index(expressions->buffers, life->buffer->id);
        life->size = most_bytes(&buffer->type);
        if (life->size < 0)
            return false;
    }
    return true;
}

KilnOpenPlan *
kiln_open_plan_most(const KilnIRFunction *function, const KilnTarget *target, int threads,
                    uint32_t flags)
{
    gint64 begin = g_get_monotonic_time();
    KilnDimBinding *binding = kiln_dim_binding_copy(function->arena, function->open->binding);
    bool least;
    if (!bind_below(function, binding, 0, &least))
        return NULL;
    g_autoptr(KilnOpenPlan) open = g_new0(KilnOpenPlan, 1);
    g_autoptr(KilnIRFunction) expressions = kiln_ir_function_copy(function);
    open->function = kiln_open_copy_at(function, binding, NULL);
    if (!open->function)
        return NULL;
    open->binding = kiln_dim_binding_copy(open->function->arena, binding);
    kiln_open_compile_regions(open->function, binding, target, threads);
    KilnMemoryPlan *plan = open->plan = lives_of(open->function, target, threads, flags);
    widen_scratch(open, function, target, threads);
    if (!widen_buffers(plan, expressions) || !add_up(plan, open->function))
        return NULL;
    int64_t bound;
    plan->arena = kiln_place(plan->lives, plan->n_lives, KILN_PLACE_WORK, &bound);
    plan->proven_optimal = plan->arena == bound;
    plan->plan_ms = (double)(g_get_monotonic_time() - begin) / 1000;
    return g_steal_pointer(&open);
}
