/* SPDX-License-Identifier: Apache-2.0 */
/* Binding: every instruction gets its kernel, every operand its place, constant operands are
 * packed (bind_weights.c). What is left for a session is to add base addresses once, and for a run
 * to walk a flat array. */
#include "runtime/bind.h"

#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "runtime/deferred.h"
#include "runtime/flow/bodies.h"
#include "runtime/program_file.h"

#include <string.h>

/* The first operand that the kernel wants packed and that is no constant weight; the number of
 * operands where there is none. */
static uint32_t
first_not_constant(const KilnKernel *kernel, const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (instr->operands[i].buffer && kiln_kernel_packs(kernel, instr, i) &&
            !kiln_operand_is_const(instr, i))
            return i;
    }
    return instr->n_operands;
}

void
kiln_bind_find_written(KilnBinder *binder)
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

KilnSlot
kiln_bind_slot(const KilnBinder *binder, KilnBuffer *buffer)
{
    KilnSlot slot = { .kind = KILN_SLOT_NONE };
    if (!buffer)
        return slot;
    KilnBuffer *origin = kiln_buffer_origin(buffer);
    slot.offset = kiln_buffer_origin_offset(buffer);
    slot.index = binder->place[origin->id];
    const KilnFolder *folder = binder->out->folder;
    switch (origin->kind) {
    case KILN_BUFFER_WEIGHT:
        slot.kind = binder->written[origin->id] ? KILN_SLOT_STATE : KILN_SLOT_WEIGHT;
        break;
    case KILN_BUFFER_INPUT:
        slot.kind = KILN_SLOT_INPUT;
        if (folder)
            slot.index = g_array_index(folder->entry, uint32_t, slot.index);
        if (folder && slot.index >= folder->n_inputs) {
            slot.kind = KILN_SLOT_FOLDED;
            slot.index = kiln_folder_buffer(folder, slot.index);
        }
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

/* Those who bind tensors state dims, and mean the plain layout. */
static gboolean
check_edges(const KilnInfoList *list, const char *what, GError **error)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (!list->types[i].layout)
            continue;
        g_autofree char *type = kiln_type_to_string(&list->types[i]);
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s %s: expected a plain layout, found %s",
                          what, list->info[i].name, type);
    }
    return TRUE;
}

static gboolean
throw_no_kernel(const KilnBinder *binder, const KilnInstr *instr, GError **error)
{
    const KilnBuffer *key = NULL;
    for (uint32_t i = 0; i < instr->n_operands && !key; i++)
        key = instr->operands[i].access == KILN_ACCESS_IN ? instr->operands[i].buffer : NULL;
    if (!key)
        key = kiln_instr_operand(instr, 0);
    g_autofree char *type = key ? kiln_type_to_string(&key->type) : g_strdup("nothing");
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (%s): backend %s has no kernel for %s",
                      kiln_instr_label(instr), kiln_instr_info(instr->kind)->name,
                      binder->options->target->name, type);
}

/* What is packed at the first run is read as it is until then, where it is a weight. */
void
kiln_bind_note_reads(KilnBinder *binder, const KilnBoundCall *call)
{
    for (uint32_t i = 0; i < call->instr->n_operands; i++) {
        KilnBuffer *buffer = call->instr->operands[i].buffer;
        bool packed = call->packed_bytes && kiln_kernel_packs(call->kernel, call->instr, i);
        if (!buffer || (packed && !(call->late && !kiln_operand_comes_late(call->instr, i))))
            continue;
        const KilnBuffer *origin = kiln_buffer_origin(buffer);
        binder->read_plain[origin->id] = true;
        binder->aligned[origin->id] |= !kiln_kernel_takes_any_address(call->kernel, i);
    }
}

gboolean
kiln_bind_prepare(KilnBoundCall *call, GError **error)
{
    if (!call->kernel->prepare)
        return TRUE;
    size_t bytes = call->kernel->prepared_bytes(call->instr);
    if (!call->prepared || call->prepared_room < bytes) {
        kiln_free(call->prepared);
        call->prepared = kiln_alloc_for("what a kernel prepares", 1, bytes, error);
        call->prepared_room = bytes;
    }
    if (!call->prepared) {
        kiln_prefix_error(error, "%s: ", kiln_instr_label(call->instr));
        return FALSE;
    }
    call->kernel->prepare(call->instr, call->prepared);
    return TRUE;
}

/* A region knows no other form of the operands that it was compiled to pack; other kernels read
 * them plain then. */
gboolean
kiln_bind_packed(KilnBoundCall *call, GError **error)
{
    const KilnKernel *kernel = call->kernel;
    const KilnInstr *instr = call->instr;
    if (!kernel->pack || !(kernel->packs || kernel->packs_operand))
        return TRUE;
    uint32_t i = first_not_constant(kernel, instr);
    call->packed_bytes = 0;
    if (i == instr->n_operands)
        call->packed_bytes = kernel->packed_bytes(instr, call->form);
    else if (instr->kind == KILN_INSTR_call)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "%s (call): expected a constant weight as operand %u, which @%s packs, "
                          "found %s",
                          kiln_instr_label(instr), i, instr->callee,
                          instr->operands[i].buffer->name);
    return TRUE;
}

/* True where pack() sees operand @i: a region sees all constants. */
static bool
pack_sees(const KilnBoundCall *call, uint32_t i)
{
    return kiln_operand_is_const(call->instr, i) &&
           (call->instr->kind == KILN_INSTR_call ||
            kiln_kernel_packs(call->kernel, call->instr, i));
}

bool
kiln_bind_comes_late(const KilnBoundCall *call)
{
    for (uint32_t i = 0; i < call->instr->n_operands; i++) {
        if (pack_sees(call, i) && kiln_operand_comes_late(call->instr, i))
            return true;
    }
    return false;
}

gboolean
kiln_bind_kernel(const KilnBinder *binder, KilnBoundCall *call, GError **error)
{
    call->kernel = kiln_target_find(binder->options->target, call->instr);
    if (!call->kernel)
        return throw_no_kernel(binder, call->instr, error);
    call->form = kiln_kernel_form(call->kernel, call->instr);
    call->parallel = kiln_instr_is_parallel(call->instr);
    call->scratch_offset = -1;
    call->packed_bytes = 0;
    return TRUE;
}

static gboolean
bind_calls(KilnBinder *binder, GError **error)
{
    KilnSpecialisation *out = binder->out;
    uint32_t n_late = 0;
    out->calls = g_new0(KilnBoundCall, out->function->n_instrs + 1);
    kiln_foreach_instr (instr, out->function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        KilnBoundCall *call = &out->calls[out->n_calls++];
        call->instr = instr;
        call->first_slot = out->n_slots;
        out->n_slots += instr->n_operands;
        if (!kiln_bind_kernel(binder, call, error) || !kiln_bind_packed(call, error))
            return FALSE;
        if (call->packed_bytes && kiln_bind_comes_late(call))
            call->late = ++n_late;
        kiln_bind_note_reads(binder, call);
        if (!kiln_bind_prepare(call, error) || !kiln_checkpoint(error))
            return FALSE;
    }
    return TRUE;
}

/* Slots of @call are those of its operands, packed or not. */
void
kiln_bind_add_packing(const KilnSpecialisation *out, const KilnBoundCall *call)
{
    KilnFolder *folder = out->folder;
    KilnLatePacking packing = { call->instr, call->kernel, call->form, call->packed_bytes,
                                g_new0(KilnPackSource, call->instr->n_operands + 1) };
    for (uint32_t i = 0; i < call->instr->n_operands; i++) {
        const KilnSlot *slot = &out->slots[call->first_slot + i];
        KilnPackSource *source = &packing.sources[i];
        if (!pack_sees(call, i))
            continue;
        *source = (KilnPackSource){ true, slot->index, NULL, slot->offset };
        if (slot->kind == KILN_SLOT_FOLDED)
            source->number = g_array_index(folder->left.results, uint32_t, slot->index);
        else if (slot->kind == KILN_SLOT_WEIGHT)
            source->weight = g_bytes_ref(out->weights[slot->index]);
    }
    kiln_folder_add_packing(folder, &packing);
}

void
kiln_bind_note_plain(const KilnSpecialisation *out)
{
    for (uint32_t i = 0; i < out->n_slots; i++) {
        if (out->slots[i].kind == KILN_SLOT_FOLDED)
            out->folder->plain[out->slots[i].index] = true;
    }
}

static void
fill_slots(KilnBinder *binder)
{
    KilnSpecialisation *out = binder->out;
    out->slots = g_new0(KilnSlot, out->n_slots + 1);
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        KilnSlot *slots = out->slots + call->first_slot;
        for (uint32_t i = 0; i < call->instr->n_operands; i++)
            slots[i] = kiln_bind_slot(binder, call->instr->operands[i].buffer);
        if (call->late)
            kiln_bind_add_packing(out, call);
        for (uint32_t i = 0; i < call->instr->n_operands; i++) {
            if (call->packed_bytes && kiln_kernel_packs(call->kernel, call->instr, i))
                slots[i].kind = KILN_SLOT_NONE;
        }
    }
    kiln_bind_note_plain(out);
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

/* --- the whole --- */

void
kiln_bind_list(KilnBinder *binder, const GPtrArray *buffers, KilnInfoList *list)
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

/* What its kernel asks for, and copies of strided operands that it does not take; nothing where
 * nothing is computed. */
static int64_t
scratch_of(const KilnInstr *instr, const KilnStoredCall *call, const KilnBindOptions *options)
{
    if (kiln_instr_computes_nothing(instr))
        return 0;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer && kiln_buffer_is_strided(buffer))
            return kiln_instr_scratch_bytes(instr, options->target, options->threads);
    }
    return (int64_t)MIN(call->scratch_bytes, (uint64_t)INT64_MAX);
}

static KilnMemoryPlan *
restore_plan(const KilnIRFunction *function, const KilnBindOptions *options, GError **error)
{
    uint64_t n, n_instrs = 0;
    const KilnStoredCall *calls = kiln_program_file_calls(options->stored, &n);
    kiln_foreach_instr (instr, function)
        n_instrs += !kiln_instr_is_bookkeeping(instr);
    if (n != n_instrs)
        return kiln_throw_null(error, KILN_ERROR_INVALID,
                               "expected %" G_GUINT64_FORMAT " calls, found %" G_GUINT64_FORMAT,
                               n_instrs, n);
    g_autofree int64_t *scratch = g_new(int64_t, n + 1), *offsets = g_new(int64_t, n + 1);
    uint64_t i = 0;
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        scratch[i] = scratch_of(instr, &calls[i], options);
        offsets[i] = calls[i].scratch;
        i++;
    }
    KilnMemoryPlan *plan = kiln_memory_plan_restore(function, scratch, offsets, error);
    if (plan)
        plan->proven_optimal = options->stored->header->proven_optimal;
    return plan;
}

/* A kernel reads packed weights as another has packed them: it must be the one that they were
 * stored for. */
static gboolean
check_kernels(const KilnBinder *binder, GError **error)
{
    uint64_t n;
    const KilnStoredCall *calls = kiln_program_file_calls(binder->options->stored, &n);
    for (uint32_t c = 0; c < binder->out->n_calls; c++) {
        const KilnBoundCall *call = &binder->out->calls[c];
        KilnStoredCall found =
            kiln_stored_call(call->instr, call->kernel, binder->options->threads);
        found.scratch = calls[c].scratch;
        found.fitted = calls[c].fitted;
        if (memcmp(&found, &calls[c], sizeof found) == 0)
            continue;
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: expected kernel %.*s as it was when the program was compiled, found "
                          "%s: compile the model again",
                          kiln_instr_label(call->instr), (int)sizeof calls[c].kernel,
                          calls[c].kernel, call->kernel->name);
    }
    return TRUE;
}

static gboolean
plan_memory(KilnSpecialisation *out, const KilnBindOptions *options, GError **error)
{
    KilnIRFunction *function = (KilnIRFunction *)out->function;
    out->plan = options->stored
                    ? restore_plan(function, options, error)
                    : kiln_memory_plan(function, options->target, options->threads, error);
    if (!out->plan)
        return FALSE;
    out->arena_bytes = out->plan->arena;
    g_autoptr(KilnMemoryExcess) excess =
        options->memory_limit ? kiln_memory_excess(function, out->plan, options->memory_limit)
                              : NULL;
    return !excess || kiln_memory_excess_throw(excess, out->plan, error);
}

/* Who packs at the first run has a table of what comes with it. */
static gboolean
check_folder(const KilnSpecialisation *out, GError **error)
{
    for (guint i = 0; !out->folder && i < out->function->inputs->len; i++) {
        const KilnBuffer *input = g_ptr_array_index(out->function->inputs, i);
        if (input->is_const)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "@%s: input @%s: const, but no fold block lists it",
                              out->function->name, input->name);
    }
    return TRUE;
}

/* Inputs of the whole program are not those of the function that runs where there is a folder. */
static gboolean
list_edges(KilnBinder *binder, GError **error)
{
    KilnSpecialisation *out = binder->out;
    const KilnInfoList *outputs = binder->options->outputs;
    kiln_bind_find_written(binder);
    kiln_bind_list(binder, out->function->inputs, &out->inputs);
    kiln_bind_list(binder, out->function->outputs, &out->outputs);
    for (unsigned i = 0; outputs && i < MIN(out->outputs.n, outputs->n); i++)
        out->outputs.info[i].name = outputs->info[i].name;
    if (out->folder) {
        kiln_info_list_clear(&out->inputs);
        kiln_info_list_init(&out->inputs, out->folder->n_inputs, out->folder->input_names,
                            out->folder->input_types);
    }
    return check_edges(&out->inputs, "input", error) && check_edges(&out->outputs, "output", error);
}

static void
clear_body(KilnBody *body)
{
    kiln_specialisation_unref(body->made);
}

/* The functions that branches and loops of @out run. */
static gboolean
bind_bodies(KilnSpecialisation *out, const KilnBindOptions *options, GError **error)
{
    out->bodies = kiln_bodies_new(out->function);
    for (guint i = 0; out->bodies && i < out->bodies->len; i++) {
        KilnBody *body = g_ptr_array_index(out->bodies, i);
        KilnSpecialisation *bound = g_hash_table_lookup(options->bodies, body->function);
        body->clear = clear_body;
        body->again = bound != NULL;
        body->made = bound ? kiln_specialisation_ref(bound)
                           : kiln_bind_function(body->function, options, error);
        if (!body->made)
            return FALSE;
        body->draws = kiln_bodies_draw(body->function, body->made->bodies);
        g_hash_table_insert(options->bodies, body->function, body->made);
    }
    return TRUE;
}

/* Binds the function of @out, after those that its branches and loops run. */
static gboolean
bind(KilnSpecialisation *out, const KilnBindOptions *options, GError **error)
{
    if (!bind_bodies(out, options, error) || !plan_memory(out, options, error) ||
        !check_folder(out, error))
        return FALSE;
    guint n = out->function->buffers->len;
    g_autofree bool *written = g_new0(bool, n + 1);
    g_autofree bool *read_plain = g_new0(bool, n + 1);
    g_autofree bool *aligned = g_new0(bool, n + 1);
    g_autofree uint32_t *place = g_new0(uint32_t, n + 1);
    KilnBinder binder = { out, options, written, read_plain, aligned, place };
    if (!list_edges(&binder, error) || !bind_calls(&binder, error) ||
        (options->stored && !check_kernels(&binder, error)) ||
        !kiln_bind_check_limits(&binder, error) || !kiln_bind_weights(&binder, error))
        return FALSE;
    fill_slots(&binder);
    return TRUE;
}

KilnSpecialisation *
kiln_program_bind(KilnIRModule *ir, const KilnBindOptions *options, GError **error)
{
    g_autoptr(KilnSpecialisation) out = g_new0(KilnSpecialisation, 1);
    atomic_init(&out->references, 1);
    out->ir = ir;
    out->function = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    out->folder = options->folder;
    g_autoptr(GHashTable) bodies = g_hash_table_new(NULL, NULL);
    KilnBindOptions own = *options;
    own.bodies = bodies;
    own.forms = options->stored;
    return bind(out, &own, error) ? g_steal_pointer(&out) : NULL;
}

KilnSpecialisation *
kiln_bind_function(KilnIRFunction *function, const KilnBindOptions *options, GError **error)
{
    g_autoptr(KilnSpecialisation) out = g_new0(KilnSpecialisation, 1);
    KilnBindOptions own = *options;
    own.keeps_constants = true;
    own.stored = NULL; /* a file has what the entry decided, and weights of the others */
    own.folder = NULL;
    own.outputs = NULL;
    own.progress = NULL;
    atomic_init(&out->references, 1);
    out->function = function;
    return bind(out, &own, error) ? g_steal_pointer(&out) : NULL;
}

static void
free_bytes_array(GBytes **array, uint32_t n)
{
    for (uint32_t i = 0; array && i < n; i++)
        g_clear_pointer(&array[i], g_bytes_unref);
    g_free(array);
}

KilnSpecialisation *
kiln_specialisation_ref(KilnSpecialisation *specialisation)
{
    atomic_fetch_add(&specialisation->references, 1);
    return specialisation;
}

void
kiln_specialisation_unref(KilnSpecialisation *specialisation)
{
    if (!specialisation || atomic_fetch_sub(&specialisation->references, 1) != 1)
        return;
    for (uint32_t i = 0; i < specialisation->n_calls; i++) {
        g_clear_pointer(&specialisation->calls[i].packed, g_bytes_unref);
        kiln_free(specialisation->calls[i].prepared);
    }
    g_free(specialisation->calls);
    g_free(specialisation->slots);
    free_bytes_array(specialisation->values, specialisation->inputs.n);
    free_bytes_array(specialisation->weights, specialisation->n_weights);
    g_free(specialisation->text_weights);
    free_bytes_array(specialisation->states, specialisation->n_states);
    kiln_folder_free(specialisation->folder);
    kiln_info_list_clear(&specialisation->inputs);
    kiln_info_list_clear(&specialisation->outputs);
    g_free(specialisation->bindings);
    kiln_memory_plan_free(specialisation->plan);
    if (specialisation->bodies && !specialisation->instance)
        g_ptr_array_unref(specialisation->bodies);
    if (specialisation->instance)
        specialisation->free_instance(specialisation->instance);
    if (specialisation->ir)
        kiln_ir_module_free(specialisation->ir);
    g_free(specialisation);
}
