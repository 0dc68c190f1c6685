/* SPDX-License-Identifier: Apache-2.0 */
/* Running a region. The library's memory objects hold addresses, so that each session that runs at
 * the same time needs a set of them: a context, taken without a lock and kept for the next run,
 * which finds most addresses as they were. */
#include "backends/onednn/region.h"

#include "backends/onednn/finite.h"
#include "graph/base/alloc.h"

#include <string.h>

struct Context {
    Context *next;
    atomic_flag busy;
    dnnl_stream_t stream;
    dnnl_memory_t *memories; /* per slot */
    void **addresses;        /* what they hold */
    dnnl_exec_arg_t *args;   /* of all steps */
    void **data;             /* the same for own kernels: addresses */
    float *bounds;           /* of values, as far as they are proved */
};

static void
context_free(const Region *region, Context *context)
{
    for (guint i = 0; i < region->slots->len; i++) {
        if (context->memories[i])
            dnnl_memory_destroy(context->memories[i]);
    }
    if (context->stream)
        dnnl_stream_destroy(context->stream);
    g_free(context->memories);
    g_free(context->addresses);
    g_free(context->args);
    g_free(context->data);
    g_free(context->bounds);
    g_free(context);
}

/* NULL where the library is out of memory. */
static Context *
context_new(const Region *region)
{
    Context *context = g_new0(Context, 1);
    guint n = region->slots->len;
    dnnl_engine_t engine = kiln_onednn_engine();
    context->memories = g_new0(dnnl_memory_t, n + 1);
    context->addresses = g_new0(void *, n + 1);
    context->args = g_new0(dnnl_exec_arg_t, region->args->len + 1);
    context->data = g_new0(void *, region->args->len + 1);
    context->bounds = g_new0(float, region->bounds->len + 1);
    bool good = dnnl_stream_create(&context->stream, engine, dnnl_stream_in_order) == dnnl_success;
    for (guint i = 0; good && i < n; i++)
        good = dnnl_memory_create(&context->memories[i], &g_array_index(region->slots, Slot, i).md,
                                  engine, DNNL_MEMORY_NONE) == dnnl_success;
    if (!good) {
        context_free(region, context);
        return NULL;
    }
    for (guint i = 0; i < region->args->len; i++) {
        const StepArg *arg = &g_array_index(region->args, StepArg, i);
        context->args[i] = (dnnl_exec_arg_t){ arg->arg, context->memories[arg->slot] };
    }
    atomic_flag_test_and_set(&context->busy);
    return context;
}

void
kiln_onednn_contexts_free(Region *region)
{
    Context *context = atomic_load(&region->contexts);
    while (context) {
        Context *next = context->next;
        context_free(region, context);
        context = next;
    }
}

/* One that nobody uses now; NULL where there is no memory for another. */
static Context *
take_context(Region *region)
{
    for (Context *context = atomic_load(&region->contexts); context; context = context->next) {
        if (!atomic_flag_test_and_set(&context->busy))
            return context;
    }
    Context *context = context_new(region);
    if (!context)
        return NULL;
    context->next = atomic_load(&region->contexts);
    while (!atomic_compare_exchange_weak(&region->contexts, &context->next, context))
        ;
    return context;
}

static void *
address_of(const Region *region, const KilnKernelArgs *args, const Slot *slot)
{
    size_t offset = 0;
    for (; slot->place == SLOT_ALIAS; slot = &g_array_index(region->slots, Slot, slot->index))
        offset += slot->offset;
    switch (slot->place) {
    case SLOT_OPERAND:
        return (char *)args->data[slot->index] + offset;
    case SLOT_PACKED:
        return (char *)args->packed + slot->offset + offset;
    default:
        return (char *)args->scratch + slot->offset + offset;
    }
}

/* The library computes in the order in which it is asked, and is done when it returns. */
static const char *
run_custom(const Region *region, const Context *context, const Step *step, int threads)
{
    void **data = context->data + step->first_arg;
    for (uint32_t i = 0; i < step->n_args; i++) {
        const StepArg *arg = &g_array_index(region->args, StepArg, step->first_arg + i);
        data[i] = context->addresses[arg->slot];
    }
    return kiln_custom_run(step->custom, data, data[step->n_args - 1], threads);
}

static const char *
set_addresses(const Region *region, Context *context, const KilnKernelArgs *args)
{
    for (guint i = 0; i < region->slots->len; i++) {
        const Slot *slot = &g_array_index(region->slots, Slot, i);
        void *address = address_of(region, args, slot);
        if (address == context->addresses[i])
            continue;
        if (dnnl_memory_set_data_handle_v2(context->memories[i], address, context->stream) !=
            dnnl_success)
            return "oneDNN refuses an address";
        context->addresses[i] = address;
    }
    return NULL;
}

static const char *
run_step(const Region *region, const Context *context, const Step *step, int threads, int *set)
{
    const char *message = step->custom ? run_custom(region, context, step, threads) : NULL;
    if (message)
        return message;
    int wanted = step->small ? 1 : threads;
    if (wanted != *set)
        kiln_onednn_set_threads(wanted);
    *set = wanted;
    if (!step->custom && dnnl_primitive_execute(step->primitive, context->stream, (int)step->n_args,
                                                context->args + step->first_arg) != dnnl_success)
        return "oneDNN failed to run a primitive";
    return NULL;
}

/* *@out_proved: all steps were run; else nothing is computed, and a careful run begins anew. No
 * step writes what it is given. */
static const char *
run_steps(const Region *region, const Context *context, int threads, bool careful, bool *out_proved)
{
    int set = threads;
    guint guard = 0;
    *out_proved = true;
    kiln_onednn_set_threads(threads);
    for (guint i = 0; i < region->steps->len; i++) {
        const Step *step = &g_array_index(region->steps, Step, i);
        *out_proved =
            careful || kiln_onednn_prove(region, i, context->addresses, context->bounds, &guard);
        if (!*out_proved)
            return NULL;
        if (step->when == (careful ? RUN_FAST : RUN_CAREFUL))
            continue;
        const char *message = run_step(region, context, step, threads, &set);
        if (message)
            return message;
    }
    return NULL;
}

static const char *
run(Region *region, Context *context, const KilnKernelArgs *args, int threads)
{
    bool proved = true;
    const char *message = set_addresses(region, context, args);
    if (message)
        return message;
    if (region->guards->len > 0)
        kiln_onednn_begin_guards(region, args, context->bounds);
    message = run_steps(region, context, threads, false, &proved);
    if (!proved) {
        atomic_fetch_add_explicit(&region->compiled.begun_anew, 1, memory_order_relaxed);
        message = run_steps(region, context, threads, true, &proved);
    }
    if (message)
        return message;
    if (kiln_onednn_met_barrier())
        return "oneDNN asks for a barrier in a parallel part";
    return dnnl_stream_wait(context->stream) == dnnl_success ? NULL : "oneDNN failed";
}

/* The first run generates the code of all steps, for the threads that the region was built for. */
static bool
make_primitives(Region *region)
{
    if (atomic_load_explicit(&region->made, memory_order_acquire))
        return true;
    bool good = true;
    pthread_mutex_lock(&region->making);
    int before = kiln_onednn_set_threads(1);
    for (guint i = 0; good && i < region->steps->len; i++) {
        Step *step = &g_array_index(region->steps, Step, i);
        if (step->primitive || step->custom)
            continue;
        kiln_onednn_set_threads(region->small || step->small ? 1 : region->compiled.threads);
        good = dnnl_primitive_create(&step->primitive, step->pd) == dnnl_success;
        if (good)
            dnnl_primitive_desc_destroy(g_steal_pointer(&step->pd));
    }
    if (good)
        atomic_store_explicit(&region->made, true, memory_order_release);
    kiln_onednn_set_threads(before);
    pthread_mutex_unlock(&region->making);
    return good;
}

const char *
kiln_onednn_run(const KilnKernelArgs *args)
{
    Region *region = (Region *)kiln_call_compiled(args->instr);
    int threads = region->small ? 1 : args->threads;
    if (!make_primitives(region))
        return "oneDNN failed to generate code";
    int before = kiln_onednn_set_threads(threads);
    Context *context = take_context(region);
    const char *message = context ? run(region, context, args, threads) : "oneDNN is out of memory";
    if (context)
        atomic_flag_clear(&context->busy);
    kiln_onednn_set_threads(before);
    return message;
}

/* --- weights --- */

static dnnl_status_t
reorder(const Region *region, const Pack *pack, const void *from, void *to, dnnl_stream_t stream)
{
    dnnl_engine_t engine = kiln_onednn_engine();
    const Slot *slot = &g_array_index(region->slots, Slot, pack->slot);
    dnnl_memory_t source = NULL, target = NULL, scratch = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_desc_t needed = { 0 };
    dnnl_status_t status = kiln_onednn_reorder_pd(&pack->from, &slot->md, &pd);
    if (status == dnnl_success) {
        needed = *dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        status = dnnl_primitive_create(&primitive, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    if (status == dnnl_success)
        status = dnnl_memory_create(&source, &pack->from, engine, (void *)from);
    if (status == dnnl_success)
        status = dnnl_memory_create(&target, &slot->md, engine, to);
    if (status == dnnl_success && dnnl_memory_desc_get_size(&needed) > 0)
        status = dnnl_memory_create(&scratch, &needed, engine, DNNL_MEMORY_ALLOCATE);
    dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, source },
                               { DNNL_ARG_TO, target },
                               { DNNL_ARG_SCRATCHPAD, scratch } };
    if (status == dnnl_success)
        status = dnnl_primitive_execute(primitive, stream, scratch ? 3 : 2, args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(stream);
    if (primitive)
        dnnl_primitive_destroy(primitive);
    if (source)
        dnnl_memory_destroy(source);
    if (target)
        dnnl_memory_destroy(target);
    if (scratch)
        dnnl_memory_destroy(scratch);
    return status;
}

/* Of literals, which lie in the model's file at any address. */
static float
float_at(const void *from, size_t i)
{
    float value;
    memcpy(&value, (const char *)from + i * sizeof value, sizeof value);
    return value;
}

/* Gates as the library has them, which is input, forget, cell, output; NULL where there is no
 * memory for them. */
static float *
order_gates(const Pack *pack, const void *from)
{
    static const int order[] = { 0, 2, 3, 1 }; /* ONNX: input, output, forget, cell */
    size_t n = (size_t)pack->gate;
    float *ordered = kiln_alloc(4 * n, sizeof *ordered, NULL);
    for (size_t g = 0; ordered && g < 4; g++) {
        size_t gate = (size_t)order[g] * n;
        for (size_t i = 0; i < n; i++) {
            float value = float_at(from, gate + i);
            ordered[g * n + i] = pack->twice ? value + float_at(from, gate + 4 * n + i) : value;
        }
    }
    return ordered;
}

static dnnl_status_t
pack_one(const Region *region, const Pack *pack, const void *from, void *to, dnnl_stream_t stream)
{
    const Slot *slot = &g_array_index(region->slots, Slot, pack->slot);
    float *gates = pack->gate ? order_gates(pack, from) : NULL;
    dnnl_status_t status = dnnl_success;
    if (pack->gate && !gates)
        status = dnnl_out_of_memory;
    else if (!dnnl_memory_desc_equal(&pack->from, &slot->md))
        status = reorder(region, pack, gates ? gates : from, to, stream);
    else
        memcpy(to, gates ? gates : from, dnnl_memory_desc_get_size(&slot->md));
    kiln_free(gates);
    return status;
}

const char *
kiln_onednn_pack(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed,
                 KilnSlice slice)
{
    (void)form;
    (void)slice; /* the whole */
    Region *region = (Region *)kiln_call_compiled(instr);
    dnnl_stream_t stream = NULL;
    kiln_onednn_measure(region, data, packed);
    int before = kiln_onednn_set_threads(region->compiled.threads);
    dnnl_status_t status = dnnl_stream_create(&stream, kiln_onednn_engine(), dnnl_stream_in_order);
    for (guint i = 0; status == dnnl_success && i < region->packs->len; i++) {
        const Pack *pack = &g_array_index(region->packs, Pack, i);
        const Slot *slot = &g_array_index(region->slots, Slot, pack->slot);
        const void *from = pack->literal ? pack->literal : data[pack->operand];
        void *to = (char *)packed + slot->offset;
        status = pack_one(region, pack, from, to, stream);
    }
    if (stream)
        dnnl_stream_destroy(stream);
    kiln_onednn_set_threads(before);
    if (status == dnnl_out_of_memory)
        return "oneDNN is out of memory";
    return status == dnnl_success ? NULL : "oneDNN failed to reorder them";
}
