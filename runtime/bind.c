/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: every instruction gets its kernel, every operand its place, constant operands are
 * packed. What is left for a session is to add base addresses once, and for a run to walk a flat
 * array. */
#include "runtime/internal.h"

#include "graph/alloc.h"

#include <string.h>

/* Below this much work one thread is faster than waking the others: a parallel region costs about
 * as much as 32 k element-wise operations, and must be a small part of what it saves. */
enum {
    PARALLEL_FLOPS = 200 * 1000,
    PARALLEL_BYTES = 512 * 1024,
};

typedef struct {
    KilnSpecialisation *out;
    const KilnTarget *target;
    int threads;
    bool *written;       /* per buffer id: an instruction writes to it (through views) */
    bool *read_unpacked; /* per buffer id: a kernel reads its plain bytes */
    uint32_t *place;     /* per buffer id: index among weights, states, inputs or outputs */
} Binder;

static bool
packs_all(const Binder *binder, const KilnKernel *kernel, const KilnInstr *instr)
{
    if (!kernel->pack || !kernel->packs)
        return false;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        if (!(kernel->packs >> i & 1) || !buffer)
            continue;
        const KilnBuffer *origin = kiln_buffer_origin(buffer);
        if (origin->kind != KILN_BUFFER_WEIGHT || binder->written[origin->id])
            return false;
    }
    return true;
}

static void
find_written(Binder *binder)
{
    kiln_foreach_instr (instr, binder->out->function) {
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBufferUse *use = &instr->operands[i];
            bool writes = use->access != KILN_ACCESS_IN && !kiln_instr_is_bookkeeping(instr);
            if (use->buffer && writes)
                binder->written[kiln_buffer_origin(use->buffer)->id] = true;
        }
    }
}

/* --- operands --- */

static KilnSlot
slot_of(const Binder *binder, KilnBuffer *buffer)
{
    KilnSlot slot = { .kind = KILN_SLOT_NONE };
    if (!buffer)
        return slot;
    KilnBuffer *origin = kiln_buffer_origin(buffer);
    slot.offset = kiln_buffer_origin_offset(buffer);
    slot.index = binder->place[origin->id];
    switch (origin->kind) {
    case KILN_BUFFER_WEIGHT:
        slot.kind = binder->written[origin->id] ? KILN_SLOT_STATE : KILN_SLOT_WEIGHT;
        break;
    case KILN_BUFFER_INPUT:
        slot.kind = KILN_SLOT_INPUT;
        break;
    case KILN_BUFFER_OUTPUT:
        slot.kind = KILN_SLOT_OUTPUT;
        break;
    case KILN_BUFFER_ALLOC:
        slot.kind = KILN_SLOT_ARENA;
        slot.offset += origin->offset;
        break;
    case KILN_BUFFER_VIEW:
        break;
    }
    return slot;
}

static gboolean
pack(Binder *binder, KilnBoundCall *call, GError **error)
{
    const KilnInstr *instr = call->instr;
    size_t bytes = call->kernel->packed_bytes(instr);
    if (!bytes)
        return TRUE;
    g_autoptr(GPtrArray) views = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autofree const void **data = g_new0(const void *, instr->n_operands);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        if (!(call->kernel->packs >> i & 1) || !buffer)
            continue;
        const KilnTensor *tensor = kiln_buffer_origin(buffer)->constant->tensor;
        /* pack() reads misaligned sources: mapped bytes are taken as they are. */
        GBytes *view = tensor->kind == KILN_TENSOR_DATA ? g_bytes_ref(tensor->bytes)
                                                        : kiln_tensor_view(tensor, error);
        if (!view)
            return FALSE;
        g_ptr_array_add(views, view);
        data[i] = (const char *)g_bytes_get_data(view, NULL) + kiln_buffer_origin_offset(buffer);
    }
    call->packed = kiln_alloc(1, bytes, error);
    if (!call->packed)
        return FALSE;
    call->kernel->pack(instr, data, call->packed);
    binder->out->weight_bytes += (int64_t)bytes;
    return TRUE;
}

static gboolean
throw_no_kernel(const Binder *binder, const KilnInstr *instr, GError **error)
{
    const KilnBuffer *key = NULL;
    for (uint32_t i = 0; i < instr->n_operands && !key; i++)
        key = instr->operands[i].access == KILN_ACCESS_IN ? instr->operands[i].buffer : NULL;
    if (!key)
        key = kiln_instr_operand(instr, 0);
    g_autofree char *type = key ? kiln_type_to_string(&key->type) : g_strdup("nothing");
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (%s): backend %s has no kernel for %s",
                      kiln_instr_label(instr), kiln_instr_info(instr->kind)->name,
                      binder->target->name, type);
}

static gboolean
bind_calls(Binder *binder, GError **error)
{
    KilnSpecialisation *out = binder->out;
    out->calls = g_new0(KilnBoundCall, out->function->n_instrs + 1);
    uint32_t n_slots = 0;
    kiln_foreach_instr (instr, out->function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        KilnBoundCall *call = &out->calls[out->n_calls++];
        call->instr = instr;
        call->kernel = kiln_target_find(binder->target, instr);
        if (!call->kernel)
            return throw_no_kernel(binder, instr, error);
        call->cost = kiln_instr_cost(instr);
        call->parallel = call->cost.flops >= PARALLEL_FLOPS || call->cost.bytes >= PARALLEL_BYTES;
        call->scratch_offset = -1;
        call->first_slot = n_slots;
        n_slots += instr->n_operands;
        bool packed = packs_all(binder, call->kernel, instr);
        if (packed && !pack(binder, call, error))
            return FALSE;
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBuffer *buffer = instr->operands[i].buffer;
            bool plain = !call->packed || !(call->kernel->packs >> i & 1);
            if (buffer && plain)
                binder->read_unpacked[kiln_buffer_origin(buffer)->id] = true;
        }
    }
    out->n_slots = n_slots;
    return TRUE;
}

static void
fill_slots(Binder *binder)
{
    KilnSpecialisation *out = binder->out;
    out->slots = g_new0(KilnSlot, out->n_slots + 1);
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        for (uint32_t i = 0; i < call->instr->n_operands; i++) {
            KilnSlot *slot = &out->slots[call->first_slot + i];
            *slot = slot_of(binder, call->instr->operands[i].buffer);
            if (call->packed && call->kernel->packs >> i & 1)
                slot->kind = KILN_SLOT_NONE;
        }
    }
    g_autofree int64_t *scratch = g_new(int64_t, out->function->next_id + 1);
    for (uint32_t i = 0; i <= out->function->next_id; i++)
        scratch[i] = -1;
    for (uint32_t i = 0; i < out->plan->n_lives; i++) {
        const KilnLife *life = &out->plan->lives[i];
        if (life->scratch_of)
            scratch[life->scratch_of->id] = life->offset;
    }
    for (uint32_t c = 0; c < out->n_calls; c++)
        out->calls[c].scratch_offset = scratch[out->calls[c].instr->id];
}

/* --- weights, inputs, outputs --- */

static gboolean
bind_weights(Binder *binder, GError **error)
{
    KilnSpecialisation *out = binder->out;
    const GPtrArray *weights = out->function->weights;
    out->weights = g_new0(GBytes *, weights->len + 1);
    out->states = g_new0(GBytes *, weights->len + 1);
    for (guint i = 0; i < weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(weights, i);
        bool state = binder->written[weight->id];
        binder->place[weight->id] = state ? out->n_states++ : out->n_weights++;
        if (!binder->read_unpacked[weight->id])
            continue;
        GBytes *view = kiln_tensor_view(weight->constant->tensor, error);
        if (!view) {
            g_prefix_error(error, "constant %s: ", weight->name);
            return FALSE;
        }
        if (state)
            out->states[out->n_states - 1] = view;
        else
            out->weights[out->n_weights - 1] = view;
        out->weight_bytes += (int64_t)g_bytes_get_size(view);
    }
    return TRUE;
}

static void
list_buffers(Binder *binder, const GPtrArray *buffers, KilnInfoList *list)
{
    g_autofree const char **names = g_new0(const char *, buffers->len + 1);
    g_autofree KilnType *types = g_new0(KilnType, buffers->len + 1);
    for (guint i = 0; i < buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(buffers, i);
        binder->place[buffer->id] = i;
        names[i] = buffer->name;
        types[i] = buffer->type;
    }
    kiln_info_list_init(list, buffers->len, names, types);
}

KilnSpecialisation *
kiln_program_bind(KilnIRModule *ir, const KilnTarget *target, int threads, GError **error)
{
    g_autoptr(KilnSpecialisation) out = g_new0(KilnSpecialisation, 1);
    out->ir = ir;
    KilnIRFunction *function = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    out->function = function;
    out->plan = kiln_memory_plan(function, target, threads, error);
    if (!out->plan)
        return NULL;
    out->arena_bytes = out->plan->arena;
    guint n = function->buffers->len;
    g_autofree bool *written = g_new0(bool, n + 1);
    g_autofree bool *read_unpacked = g_new0(bool, n + 1);
    g_autofree uint32_t *place = g_new0(uint32_t, n + 1);
    Binder binder = { out, target, threads, written, read_unpacked, place };
    find_written(&binder);
    list_buffers(&binder, function->inputs, &out->inputs);
    list_buffers(&binder, function->outputs, &out->outputs);
    if (!bind_calls(&binder, error) || !bind_weights(&binder, error))
        return NULL;
    fill_slots(&binder);
    return g_steal_pointer(&out);
}

static void
free_bytes_array(GBytes **array, uint32_t n)
{
    for (uint32_t i = 0; array && i < n; i++)
        g_clear_pointer(&array[i], g_bytes_unref);
    g_free(array);
}

void
kiln_specialisation_free(KilnSpecialisation *specialisation)
{
    if (!specialisation)
        return;
    for (uint32_t i = 0; i < specialisation->n_calls; i++)
        kiln_free(specialisation->calls[i].packed);
    g_free(specialisation->calls);
    g_free(specialisation->slots);
    free_bytes_array(specialisation->values, specialisation->inputs.n);
    free_bytes_array(specialisation->weights, specialisation->n_weights);
    free_bytes_array(specialisation->states, specialisation->n_states);
    kiln_info_list_clear(&specialisation->inputs);
    kiln_info_list_clear(&specialisation->outputs);
    g_free(specialisation->bindings);
    kiln_memory_plan_free(specialisation->plan);
    if (specialisation->ir)
        kiln_ir_module_free(specialisation->ir);
    g_free(specialisation);
}
