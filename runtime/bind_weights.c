/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a bound program: packed for the kernels that want it, as aligned views for the others.
 *
 * A model's weights are a map of its file, often misaligned, and folding makes tensors that nothing
 * but one packing reads. So that no weight lies in memory twice, a constant of the program's module
 * is let go as soon as nothing that is still to be bound reads it, and the pages of mapped sources
 * are dropped. Specialisations, and programs with one constant cache, share blocks of equal bytes.
 */
#include "runtime/bind.h"

#include "backends/cpu/parallel.h"
#include "graph/base/alloc.h"
#include "ir/flow.h"
#include "ir/vendor.h"
#include "runtime/body_forms.h"
#include "runtime/constant_cache.h"
#include "runtime/fold_calls.h"
#include "runtime/program_file.h"
#include "runtime/sealed.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    KilnBinder *binder;
    KilnSealer *sealer;
    uint32_t *readers; /* per constant: packings and views that are still to be made */
} Weights;

/* --- letting go --- */

static void
let_go(KilnConstant *constant)
{
    if (!constant->tensor)
        return;
    kiln_tensor_drop_pages(constant->tensor);
    g_clear_pointer(&constant->tensor, kiln_tensor_free);
}

static void
has_read(Weights *weights, KilnConstant *constant)
{
    bool last = --weights->readers[constant->id] == 0;
    if (last && weights->binder->options->keeps_constants)
        kiln_tensor_drop_pages(constant->tensor);
    else if (last)
        let_go(constant);
}

/* The weight below operand @i of a call, if its kernel wants the operand packed now. */
static KilnBuffer *
packed_operand(const KilnBoundCall *call, uint32_t i)
{
    KilnBuffer *buffer = call->instr->operands[i].buffer;
    bool wanted = call->packed_bytes && !call->late && buffer &&
                  kiln_kernel_packs(call->kernel, call->instr, i);
    return wanted ? kiln_buffer_origin(buffer) : NULL;
}

static void
count_weights(const KilnIRFunction *function, uint32_t *readers)
{
    for (guint i = 0; i < function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(function->weights, i);
        if (weight->constant)
            readers[weight->constant->id]++;
    }
}

/* What functions of branches and loops read stays: they are bound later, and those of folds are
 * interpreted. */
static void
count_in_bodies(const KilnIRModule *ir, uint32_t *readers)
{
    for (guint f = 0; f < ir->functions->len; f++) {
        kiln_foreach_instr (instr, (const KilnIRFunction *)g_ptr_array_index(ir->functions, f)) {
            for (int b = 0; b < kiln_flow_n_functions(instr); b++)
                count_weights(kiln_flow_function(instr, b), readers);
        }
    }
}

static void
count_readers(Weights *weights)
{
    const KilnBinder *binder = weights->binder;
    const KilnSpecialisation *out = binder->out;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        for (uint32_t i = 0; i < out->calls[c].instr->n_operands && !out->calls[c].packed; i++) {
            const KilnBuffer *weight = packed_operand(&out->calls[c], i);
            if (weight)
                weights->readers[weight->constant->id]++;
        }
    }
    for (guint i = 0; i < out->function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(out->function->weights, i);
        if (weight->constant && binder->read_plain[weight->id])
            weights->readers[weight->constant->id]++;
    }
    if (out->ir)
        count_in_bodies(out->ir, weights->readers);
    if (out->folder)
        kiln_folder_count_readers(out->folder, weights->readers);
    kiln_offload_count_readers(out->function->module, weights->readers);
    const GPtrArray *constants = out->function->module->constants;
    for (guint i = 0; i < constants->len && !binder->options->keeps_constants; i++) {
        if (!weights->readers[i])
            let_go(g_ptr_array_index(constants, i));
    }
}

/* --- packed --- */

/* A call whose weights are being packed. */
typedef struct {
    KilnBoundCall *call;
    const void **data; /* per operand: of those that are packed, and what else pack() sees */
    GPtrArray *views;  /* GBytes*: what they lie in */
    void *packed;
    const char *_Atomic failure; /* what a slice said; NULL: all are packed */
} Packing;

/* Some calls that threads pack together: one slice of one of them is a task. */
typedef struct {
    Weights *weights;
    GArray *packings; /* Packing */
    GArray *tasks;    /* PackTask */
    guint first_task; /* of those that run now */
    size_t bytes;     /* that they make */
} Group;

typedef struct {
    guint packing;
    KilnSlice slice;
} PackTask;

enum {
    GROUP_BYTES = 4 * 1024 * 1024, /* how many are made at a time, where one call does not make
                                      more: plain weights stay until their group is done, and where
                                      others keep the processors busy each group waits for them */
    BIG_BYTES =
        64 * 1024 * 1024,       /* from here on, or from the frugal ones on, a group is packed in */
    FRUGAL_BYTES = 1024 * 1024, /* several turns, after each of which the pages of its sources go */
    TURNS = 8,
};

static void
packing_clear(void *data)
{
    Packing *packing = data;
    g_free(packing->data);
    g_ptr_array_unref(packing->views);
}

/* What pack() sees: a vendor measures the constants that it reads as they lie, too. */
static KilnBuffer *
seen_operand(const KilnBoundCall *call, uint32_t i)
{
    const KilnInstr *instr = call->instr;
    if (instr->kind != KILN_INSTR_call || !kiln_operand_is_const(instr, i))
        return packed_operand(call, i);
    KilnBuffer *weight = kiln_buffer_origin(instr->operands[i].buffer);
    return weight->constant->tensor ? weight : NULL;
}

static gboolean
find_data(Packing *packing, GError **error)
{
    const KilnInstr *instr = packing->call->instr;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *weight = seen_operand(packing->call, i);
        if (!weight)
            continue;
        const KilnTensor *tensor = weight->constant->tensor;
        /* pack() reads misaligned sources: mapped bytes are taken as they are. */
        GBytes *view = tensor->kind == KILN_TENSOR_DATA ? g_bytes_ref(tensor->bytes)
                                                        : kiln_tensor_view(tensor, error);
        if (!view) {
            kiln_prefix_error(error, "constant %s: ", weight->name);
            return FALSE;
        }
        g_ptr_array_add(packing->views, view);
        packing->data[i] = (const char *)g_bytes_get_data(view, NULL) +
                           kiln_buffer_origin_offset(instr->operands[i].buffer);
    }
    return TRUE;
}

static void
drop_sources(const KilnBoundCall *call)
{
    for (uint32_t i = 0; i < call->instr->n_operands; i++) {
        const KilnBuffer *weight = packed_operand(call, i);
        if (weight)
            kiln_tensor_drop_pages(weight->constant->tensor);
    }
}

/* The head of the form of fewer bytes, where the weights have one and bytes count; else empty. */
static GByteArray *
measure(const Group *group, const Packing *packing)
{
    const KilnBindOptions *options = group->weights->binder->options;
    KilnBoundCall *call = packing->call;
    GByteArray *head = g_byte_array_new();
    const KilnFitted *fitted = options->frugal ? call->kernel->fitted : NULL;
    if (!fitted || (fitted->suits && !fitted->suits(call->instr)))
        return head;
    size_t bytes = fitted->measure(call->instr, call->form, packing->data, options->threads, head);
    if (call->packed_bytes >= FRUGAL_BYTES)
        drop_sources(call);
    call->fitted = bytes > 0;
    if (bytes)
        call->packed_bytes = bytes;
    else
        g_byte_array_set_size(head, 0);
    return head;
}

static gboolean
add_call(Group *group, KilnBoundCall *call, GError **error)
{
    const KilnInstr *instr = call->instr;
    Packing packing = { .call = call,
                        .data = g_new0(const void *, instr->n_operands),
                        .views = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref) };
    if (!find_data(&packing, error)) {
        packing_clear(&packing);
        return FALSE;
    }
    g_autoptr(GByteArray) head = measure(group, &packing);
    /* Zeros: what pack() leaves out is padding, which must not make equal weights differ. */
    call->packed =
        kiln_sealer_alloc(group->weights->sealer, call->packed_bytes, &packing.packed, error);
    if (!call->packed) {
        packing_clear(&packing);
        kiln_prefix_error(error, "%s: packed weights: ", kiln_instr_label(instr));
        return FALSE;
    }
    if (head->len)
        memcpy(packing.packed, head->data, head->len);
    g_array_append_val(group->packings, packing);
    group->bytes += call->packed_bytes;
    /* A vendor brings threads of its own. */
    unsigned n = instr->kind == KILN_INSTR_call
                     ? 1
                     : (unsigned)((call->packed_bytes + KILN_PACK_SLICE - 1) / KILN_PACK_SLICE);
    for (unsigned i = 0; i < n; i++) {
        PackTask task = { group->packings->len - 1, { i, n } };
        g_array_append_val(group->tasks, task);
    }
    return TRUE;
}

static void
pack_task(const void *data, int64_t index, int thread)
{
    (void)thread;
    const Group *group = data;
    const PackTask *task = &g_array_index(group->tasks, PackTask, group->first_task + index);
    Packing *packing = &g_array_index(group->packings, Packing, task->packing);
    const KilnBoundCall *call = packing->call;
    if (call->fitted) {
        call->kernel->fitted->pack(call->instr, call->form, packing->data, packing->packed,
                                   task->slice);
        return;
    }
    const char *message =
        call->kernel->pack(call->instr, call->form, packing->data, packing->packed, task->slice);
    if (message)
        atomic_store(&packing->failure, message);
}

/* What is packed row by row is read row by row: after each turn as much of it is needed no more as
 * was packed. What is read across comes back into the process, from the page cache, turn by turn.
 */
static void
run_tasks(Group *group)
{
    const KilnBindOptions *options = group->weights->binder->options;
    int threads = group->bytes < KILN_PACK_ALONE ? 1 : options->threads;
    bool turns = group->bytes >= (options->frugal ? FRUGAL_BYTES : BIG_BYTES);
    guint all = group->tasks->len, step = turns ? all / TURNS + 1 : all;
    for (group->first_task = 0; group->first_task < all; group->first_task += step) {
        guint n = MIN(step, all - group->first_task);
        kiln_cpu_parallel(n, threads, pack_task, group);
        for (guint p = 0; turns && p < group->packings->len; p++)
            drop_sources(g_array_index(group->packings, Packing, p).call);
    }
}

static gboolean
check_packed(const Group *group, GError **error)
{
    for (guint p = 0; p < group->packings->len; p++) {
        const Packing *packing = &g_array_index(group->packings, Packing, p);
        const char *message = atomic_load(&packing->failure);
        if (message)
            return kiln_throw_not_packed(packing->call->instr, message, error);
    }
    return TRUE;
}

/* Packs what the group has and empties it. */
static gboolean
pack_group(Group *group, GError **error)
{
    Weights *weights = group->weights;
    const KilnBindOptions *options = weights->binder->options;
    run_tasks(group);
    if (!check_packed(group, error))
        return FALSE;
    kiln_sealer_seal(weights->sealer);
    for (guint p = 0; p < group->packings->len; p++) {
        const Packing *packing = &g_array_index(group->packings, Packing, p);
        KilnBoundCall *call = packing->call;
        call->packed = kiln_constant_cache_share(options->cache, call->packed);
        weights->binder->out->weight_bytes += (int64_t)call->packed_bytes;
        for (uint32_t i = 0; i < call->instr->n_operands; i++) {
            const KilnBuffer *weight = packed_operand(call, i);
            if (weight)
                has_read(weights, weight->constant);
        }
    }
    g_array_set_size(group->packings, 0);
    g_array_set_size(group->tasks, 0);
    group->bytes = 0;
    return TRUE;
}

static int
bigger_first(const void *a, const void *b)
{
    const KilnBoundCall *x = *(KilnBoundCall *const *)a, *y = *(KilnBoundCall *const *)b;
    if (x->packed_bytes != y->packed_bytes)
        return x->packed_bytes > y->packed_bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Calls with weights to pack, the biggest first: what is there twice while it is packed is big as
 * long as little else is packed. */
static GPtrArray *
list_packed(const KilnSpecialisation *out)
{
    GPtrArray *list = g_ptr_array_new();
    for (uint32_t c = 0; c < out->n_calls; c++) {
        if (out->calls[c].packed_bytes && !out->calls[c].late && !out->calls[c].packed)
            g_ptr_array_add(list, &out->calls[c]);
    }
    if (list->len)
        qsort(list->pdata, list->len, sizeof *list->pdata, bigger_first);
    return list;
}

static gboolean
fill_groups(Group *group, GError **error)
{
    const KilnBindOptions *options = group->weights->binder->options;
    g_autoptr(GPtrArray) list = list_packed(group->weights->binder->out);
    for (guint c = 0; c < list->len; c++) {
        KilnBoundCall *call = g_ptr_array_index(list, c);
        if (options->progress &&
            !options->progress((double)c / list->len, kiln_instr_label(call->instr), options->data))
            return kiln_throw(error, KILN_ERROR_CANCELLED, "%s: cancelled",
                              kiln_instr_label(call->instr));
        bool of_vendor = call->instr->kind == KILN_INSTR_call;
        bool full = call->packed_bytes > GROUP_BYTES - MIN(group->bytes, GROUP_BYTES);
        if ((of_vendor || full) && !pack_group(group, error))
            return FALSE;
        if (!add_call(group, call, error) || (of_vendor && !pack_group(group, error)))
            return FALSE;
    }
    return pack_group(group, error);
}

static gboolean
pack_calls(Weights *weights, GError **error)
{
    Group group = { .weights = weights,
                    .packings = g_array_new(FALSE, FALSE, sizeof(Packing)),
                    .tasks = g_array_new(FALSE, FALSE, sizeof(PackTask)) };
    g_array_set_clear_func(group.packings, packing_clear);
    gboolean good = fill_groups(&group, error);
    g_array_unref(group.packings);
    g_array_unref(group.tasks);
    return good;
}

/* --- plain --- */

static GBytes *
zeros(const KilnType *type, GError **error)
{
    size_t size = (size_t)kiln_type_bytes(type);
    void *memory;
    GBytes *bytes = kiln_bytes_new(1, size, &memory, error);
    if (bytes)
        memset(memory, 0, size);
    return bytes;
}

/* What @tensor stands for, read-only: its own pages where it was computed, else a copy. */
static GBytes *
sealed(Weights *weights, const KilnTensor *tensor, GError **error)
{
    if (tensor->kind == KILN_TENSOR_DATA && kiln_bytes_seal(tensor->bytes))
        return g_bytes_ref(tensor->bytes);
    int64_t size = tensor->kind == KILN_TENSOR_DATA ? kiln_tensor_storage(tensor)
                                                    : kiln_type_bytes(&tensor->type);
    void *memory;
    g_autoptr(GBytes) copy =
        kiln_sealer_alloc(weights->sealer, size < 0 ? SIZE_MAX : (size_t)size, &memory, error);
    if (!copy)
        return NULL;
    if (tensor->kind == KILN_TENSOR_DATA)
        kiln_tensor_drain(tensor, memory);
    else if (!kiln_tensor_write(tensor, memory, error))
        return NULL;
    kiln_sealer_seal(weights->sealer);
    return g_steal_pointer(&copy);
}

/* The bytes of a weight: those of the model's map, which is read-only, where they are aligned there
 * or no kernel asks, else a copy, which is read-only too unless it begins a state. State that no
 * constant begins is zero. */
static GBytes *
view_of(Weights *weights, const KilnBuffer *weight, bool state, GError **error)
{
    if (!weight->constant)
        return zeros(&weight->type, error);
    const KilnTensor *tensor = weight->constant->tensor;
    if (tensor->type.dtype == KILN_DTYPE_string) /* only these bytes hold their texts */
        return kiln_tensor_view(tensor, error);
    const void *data =
        tensor->kind == KILN_TENSOR_DATA ? g_bytes_get_data(tensor->bytes, NULL) : NULL;
    size_t unit = MAX(kiln_dtype_size(tensor->type.dtype), (size_t)1);
    bool fits = (uintptr_t)data % unit == 0 || state || !weights->binder->aligned[weight->id];
    if (data && tensor->mapped && fits) {
        /* The pages that this program reads are those of the map: they stay. */
        weights->readers[weight->constant->id]--;
        return g_bytes_ref(tensor->bytes);
    }
    GBytes *view = state ? kiln_tensor_view(tensor, error) : sealed(weights, tensor, error);
    if (!view) {
        kiln_prefix_error(error, "constant %s: ", weight->name);
        return NULL;
    }
    has_read(weights, weight->constant);
    return kiln_constant_cache_share(weights->binder->options->cache, view);
}

/* --- stored --- */

/* A section as it lies in the file, which must have @size bytes. */
static GBytes *
stored_bytes(const KilnBinder *binder, KilnSectionKind kind, uint32_t index, uint64_t size,
             GError **error)
{
    const KilnProgramFile *stored = binder->options->stored;
    const KilnSection *section = kiln_program_file_find(stored, kind, index);
    if (section && section->size == size)
        return kiln_program_file_get(stored, kind, index);
    return kiln_throw_null(error, KILN_ERROR_INVALID,
                           "expected %" G_GUINT64_FORMAT " bytes, found %" G_GUINT64_FORMAT, size,
                           section ? section->size : 0);
}

/* The file says whether the weights of call @c are fitted, and their kernel whether it can read
 * what there is: their size says nothing. */
static GBytes *
stored_packed(const KilnBinder *binder, uint32_t c, GError **error)
{
    const KilnProgramFile *stored = binder->options->stored;
    KilnBoundCall *call = &binder->out->calls[c];
    if (!kiln_program_file_calls(stored, NULL)[c].fitted)
        return stored_bytes(binder, KILN_SECTION_PACKED, c, call->packed_bytes, error);
    g_autoptr(GBytes) bytes = kiln_program_file_get(stored, KILN_SECTION_PACKED, c);
    const KilnFitted *fitted = call->kernel->fitted;
    size_t size = 0;
    const void *data = bytes ? g_bytes_get_data(bytes, &size) : NULL;
    if (!fitted || !data || !fitted->is_sound(call->instr, call->form, data, size))
        return kiln_throw_null(error, KILN_ERROR_INVALID,
                               "expected what %s packs in fewer bytes, found %zu other bytes",
                               call->kernel->name, size);
    call->fitted = true;
    call->packed_bytes = size;
    return g_steal_pointer(&bytes);
}

static gboolean
take_packed(const KilnBinder *binder, GError **error)
{
    KilnSpecialisation *out = binder->out;
    for (uint32_t c = 0; c < out->n_calls; c++) {
        KilnBoundCall *call = &out->calls[c];
        if (!call->packed_bytes || call->late)
            continue;
        call->packed = stored_packed(binder, c, error);
        if (!call->packed) {
            kiln_prefix_error(error, "%s: packed weights: ", kiln_instr_label(call->instr));
            return FALSE;
        }
        out->weight_bytes += (int64_t)call->packed_bytes;
    }
    return TRUE;
}

static GBytes *
stored_view(const KilnBinder *binder, const KilnBuffer *weight, bool state, uint32_t i,
            GError **error)
{
    const KilnTensor *tensor = weight->constant ? weight->constant->tensor : NULL;
    if (weight->type.dtype == KILN_DTYPE_string) /* it stands in the text */
        return tensor ? kiln_tensor_view(tensor, error)
                      : kiln_throw_null(error, KILN_ERROR_INVALID,
                                        "weight %s: expected strings in the text", weight->name);
    KilnSectionKind kind = state ? KILN_SECTION_STATE : KILN_SECTION_WEIGHT;
    uint64_t size = (uint64_t)kiln_type_bytes(&weight->type);
    const KilnProgramFile *stored = binder->options->stored;
    g_autoptr(GBytes) view = stored_bytes(binder, kind, i, size, error);
    if (!view) {
        kiln_prefix_error(error, "weight %s: ", weight->name);
        return NULL;
    }
    const KilnSection *section = kiln_program_file_find(stored, kind, i);
    if (weight->constant && !kiln_program_file_attach(stored, section, weight->constant, error))
        return NULL;
    return g_steal_pointer(&view);
}

/* --- the whole --- */

static gboolean
view_plain(Weights *weights, GError **error)
{
    KilnBinder *binder = weights->binder;
    KilnSpecialisation *out = binder->out;
    const GPtrArray *list = out->function->weights;
    out->n_weights = out->n_states = 0;
    if (!out->weights) {
        out->weights = g_new0(GBytes *, list->len + 1);
        out->states = g_new0(GBytes *, list->len + 1);
    }
    if (!out->text_weights)
        out->text_weights = g_new0(bool, list->len + 1);
    for (guint i = 0; i < list->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(list, i);
        bool state = binder->written[weight->id];
        GBytes **to = state ? &out->states[out->n_states] : &out->weights[out->n_weights];
        binder->place[weight->id] = state ? out->n_states++ : out->n_weights++;
        if (!state)
            out->text_weights[binder->place[weight->id]] = weight->type.dtype == KILN_DTYPE_string;
        if (!binder->read_plain[weight->id] || *to)
            continue;
        *to = binder->options->stored
                  ? stored_view(binder, weight, state, binder->place[weight->id], error)
                  : view_of(weights, weight, state, error);
        if (!*to)
            return FALSE;
        out->weight_bytes += (int64_t)g_bytes_get_size(*to);
    }
    return TRUE;
}

gboolean
kiln_bind_weights(KilnBinder *binder, GError **error)
{
    const GPtrArray *constants = binder->out->function->module->constants;
    g_autofree uint32_t *readers = g_new0(uint32_t, constants->len + 1);
    g_autoptr(KilnSealer) sealer = kiln_sealer_new();
    Weights weights = { binder, sealer, readers };
    if (binder->options->stored)
        return take_packed(binder, error) && view_plain(&weights, error);
    if (binder->options->forms && !kiln_body_forms_take(binder, binder->options->forms, error))
        return FALSE;
    count_readers(&weights);
    return pack_calls(&weights, error) && view_plain(&weights, error);
}
