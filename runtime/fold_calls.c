/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of fold functions, while compiling and at the first run. */
#include "runtime/fold_calls.h"

#include "exec/eval.h"
#include "exec/interpret.h"
#include "graph/binding.h"
#include "graph/module.h"
#include "graph/module/folding.h"
#include "ir/open.h"
#include "kiln.h"
#include "runtime/fold_file.h"

#include <string.h>

/* --- signature and calls --- */

static KilnIRFunction *
entry_of(const KilnFolder *folder)
{
    const GPtrArray *functions = folder->ir->functions;
    return g_ptr_array_index(functions, functions->len - 1);
}

static void
set_input(KilnFolder *folder, uint32_t i, const char *name, const KilnType *type)
{
    folder->input_names[i] = name;
    folder->input_types[i] = *type;
}

/* The program's inputs: the signature where something was folded, else the entry's own. */
static void
read_signature(KilnFolder *folder)
{
    const KilnFolding *table = folder->ir->module->folding;
    const KilnIRFunction *entry = entry_of(folder);
    folder->n_inputs = table ? table->signature->len : entry->inputs->len;
    folder->input_names = g_new0(const char *, folder->n_inputs + 1);
    folder->input_types = g_new0(KilnType, folder->n_inputs + 1);
    folder->reads = g_new0(bool, folder->n_inputs + 1);
    for (uint32_t i = 0; i < folder->n_inputs; i++) {
        if (table) {
            const KilnValue *value =
                &((KilnArgument *)g_ptr_array_index(table->signature, i))->value;
            set_input(folder, i, value->name, &value->type);
        } else {
            const KilnBuffer *buffer = g_ptr_array_index(entry->inputs, i);
            set_input(folder, i, buffer->name, &buffer->type);
            g_array_append_val(folder->entry, i);
        }
    }
    if (table)
        g_array_append_vals(folder->entry, table->entry->data, table->entry->len);
}

static bool
all_known(const KilnFold *fold, const bool *known)
{
    for (uint32_t i = 0; i < fold->n_operands; i++) {
        if (!known[fold->operands[i]])
            return false;
    }
    return true;
}

static gboolean
add_call(const KilnFolder *folder, KilnFoldGroup *group, const KilnFold *fold, GError **error)
{
    KilnFoldCall call = { .function = kiln_ir_module_find_function(folder->ir, fold->function),
                          .first_result = fold->first_result };
    if (!call.function || call.function->outputs->len != fold->n_results)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "fold: expected a function @%s with %u outputs, found %s", fold->function,
                          fold->n_results, call.function ? "another number of them" : "none");
    call.operands = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_array_append_vals(call.operands, fold->operands, fold->n_operands);
    g_array_append_val(group->calls, call);
    return TRUE;
}

/* Calls that can be made now, and those that are left to the first run. */
static gboolean
divide_calls(KilnFolder *folder, KilnFoldGroup *now, GError **error)
{
    const KilnFolding *table = folder->ir->module->folding;
    folder->n_values = table ? kiln_folding_n_values(table) : folder->n_inputs;
    g_autofree bool *known = g_new0(bool, folder->n_values + 1);
    for (uint32_t i = 0; i < folder->n_inputs; i++)
        known[i] = folder->options.values && folder->options.values[i];
    for (guint i = 0; table && i < table->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(table->folds, i);
        bool can = fold->when == KILN_CONSTNESS_COMPILE && all_known(fold, known);
        KilnFoldGroup *group = can ? now : &folder->left;
        if (!add_call(folder, group, fold, error))
            return FALSE;
        const KilnFoldCall *call =
            &g_array_index(group->calls, KilnFoldCall, group->calls->len - 1);
        for (guint r = 0; can && r < call->function->outputs->len; r++)
            known[fold->first_result + r] = true;
    }
    return TRUE;
}

/* --- groups --- */

static void
group_init(KilnFoldGroup *group)
{
    group->calls = g_array_new(FALSE, FALSE, sizeof(KilnFoldCall));
    group->results = g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

static void
group_clear(KilnFoldGroup *group)
{
    for (guint i = 0; i < group->calls->len; i++)
        g_array_unref(g_array_index(group->calls, KilnFoldCall, i).operands);
    g_array_unref(group->calls);
    g_array_unref(group->results);
    g_free(group->types);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnFoldGroup, group_clear)

static void
mark(const GArray *numbers, bool *marks)
{
    for (guint i = 0; i < numbers->len; i++)
        marks[g_array_index(numbers, uint32_t, i)] = true;
}

/* The results of @group that are marked, and their types. */
static gboolean
find_results(KilnFoldGroup *group, const bool *wanted, GError **error)
{
    g_autoptr(GArray) types = g_array_new(FALSE, FALSE, sizeof(KilnType));
    for (guint c = 0; c < group->calls->len; c++) {
        const KilnFoldCall *call = &g_array_index(group->calls, KilnFoldCall, c);
        for (guint r = 0; r < call->function->outputs->len; r++) {
            uint32_t number = call->first_result + r;
            KilnType type;
            if (!wanted[number])
                continue;
            const KilnBuffer *output = g_ptr_array_index(call->function->outputs, r);
            if (!kiln_payload_type(&output->type, output->name, &type, error))
                return FALSE;
            g_array_append_val(group->results, number);
            g_array_append_val(types, type);
        }
    }
    group->types = (KilnType *)g_array_free(g_steal_pointer(&types), FALSE);
    return TRUE;
}

/* --- digests --- */

/* The elements of @tensor: the texts of strings, not their addresses. */
static gboolean
add_elements(const KilnTensor *tensor, KilnDigest *digest, GError **error)
{
    size_t size;
    bool as_is = tensor->kind == KILN_TENSOR_DATA && tensor->type.dtype != KILN_DTYPE_string;
    g_autoptr(GBytes) view = as_is ? g_bytes_ref(tensor->bytes)
                             : tensor->type.dtype == KILN_DTYPE_string
                                 ? kiln_tensor_stored(tensor, error)
                                 : kiln_tensor_view(tensor, error);
    const void *data = view ? g_bytes_get_data(view, &size) : NULL;
    if (view)
        kiln_digest_add(digest, data, size);
    return view != NULL;
}

static gboolean
add_weights(const KilnIRFunction *function, KilnDigest *digest, GError **error)
{
    for (guint i = 0; i < function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(function->weights, i);
        const KilnTensor *tensor = weight->constant ? weight->constant->tensor : NULL;
        if (tensor && !add_elements(tensor, digest, error))
            return FALSE;
    }
    return TRUE;
}

/* What decides the results besides the inputs: instructions, literals, who computes. */
static gboolean
digest_code(const KilnFolder *folder, const KilnFoldGroup *group, KilnDigest *out, GError **error)
{
    const KilnTarget *target = folder->options.target;
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s %s %d\n", kiln_version(), target->name, (int)target->isa);
    *out = kiln_digest(group->results->data, group->results->len * sizeof(uint32_t));
    for (guint i = 0; i < group->calls->len; i++) {
        const KilnFoldCall *call = &g_array_index(group->calls, KilnFoldCall, i);
        kiln_ir_print(call->function, text);
        kiln_digest_add(out, call->operands->data, call->operands->len * sizeof(uint32_t));
        kiln_digest_add(out, &call->first_result, sizeof call->first_result);
        if (!add_weights(call->function, out, error))
            return FALSE;
    }
    kiln_digest_add(out, text->str, text->len);
    return TRUE;
}

/* The inputs that are read, in order. */
static void
add_inputs(const KilnFolder *folder, const bool *reads, KilnTensor *const *values,
           KilnDigest *digest)
{
    for (uint32_t i = 0; i < folder->n_inputs; i++) {
        bool texts = reads[i] && values[i]->type.dtype == KILN_DTYPE_string;
        size_t size = 0;
        g_autoptr(GBytes) stored = texts ? kiln_tensor_stored(values[i], NULL) : NULL;
        GBytes *bytes = texts ? stored : reads[i] ? values[i]->bytes : NULL;
        const void *data = bytes ? g_bytes_get_data(bytes, &size) : NULL;
        kiln_digest_add(digest, data, size);
    }
}

/* --- calls --- */

static gboolean
run_call(const KilnFolder *folder, const KilnFoldCall *call, KilnTensor **values, GError **error)
{
    g_autofree const KilnTensor **inputs = g_new0(const KilnTensor *, call->operands->len + 1);
    for (guint i = 0; i < call->operands->len; i++)
        inputs[i] = values[g_array_index(call->operands, uint32_t, i)];
    const KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                                     .inputs = inputs,
                                     .outputs = values + call->first_result,
                                     .threads = folder->options.threads,
                                     .apart = true };
    if (kiln_ir_interpret(call->function, folder->options.target, &run, error))
        return TRUE;
    kiln_prefix_error(error, "@%s: ", call->function->name);
    return FALSE;
}

/* Sets the results of @group in @values, by number: from disk or by running it. */
static gboolean
evaluate(const KilnFolder *folder, const KilnFoldGroup *group, const KilnDigest *key,
         KilnTensor **values, atomic_ullong *runs, GError **error)
{
    const char *directory = folder->options.directory;
    uint32_t n = group->results->len;
    const uint32_t *numbers = (const uint32_t *)group->results->data;
    g_autofree KilnTensor **tensors = g_new0(KilnTensor *, n + 1);
    if (directory && kiln_fold_file_load(directory, key, group->types, n, tensors)) {
        for (uint32_t i = 0; i < n; i++)
            values[numbers[i]] = tensors[i];
        return TRUE;
    }
    for (guint i = 0; i < group->calls->len; i++) {
        if (!run_call(folder, &g_array_index(group->calls, KilnFoldCall, i), values, error))
            return FALSE;
    }
    if (runs)
        atomic_fetch_add(runs, 1);
    for (uint32_t i = 0; i < n; i++)
        tensors[i] = values[numbers[i]];
    /* A directory that cannot be written to costs time, not results. */
    if (directory)
        kiln_fold_file_store(directory, key, tensors, n);
    return TRUE;
}

static KilnTensor *
input_tensor(const KilnFolder *folder, uint32_t i, GBytes *bytes, GError **error)
{
    const KilnType *type = &folder->input_types[i];
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    KilnTensor *tensor = kiln_tensor_new_data(&plain, bytes, error);
    if (!tensor)
        kiln_prefix_error(error, "input %s: ", folder->input_names[i]);
    return tensor;
}

static void
free_values(const KilnFolder *folder, KilnTensor **values)
{
    for (uint32_t i = 0; i < folder->n_values; i++)
        kiln_tensor_free(values[i]);
    g_free(values);
}

/* --- while compiling --- */

/* Inputs of @function whose values are known become weights; @numbers keeps the others. */
static void
embed(KilnIRFunction *function, GArray *numbers, KilnTensor *const *values,
      KilnConstant **constants)
{
    for (guint i = function->inputs->len; i-- > 0;) {
        uint32_t number = g_array_index(numbers, uint32_t, i);
        KilnBuffer *buffer = g_ptr_array_index(function->inputs, i);
        if (!values[number])
            continue;
        if (!constants[number])
            constants[number] = kiln_module_add_constant(
                function->module, buffer->name, kiln_tensor_copy(values[number]), &buffer->type);
        kiln_ir_make_weight(buffer, constants[number]);
        g_array_remove_index(numbers, i);
    }
}

static gboolean
compute_known(KilnFolder *folder, const KilnFoldGroup *now, KilnTensor **values, GError **error)
{
    for (uint32_t i = 0; i < folder->n_inputs; i++) {
        GBytes *bytes = folder->options.values ? folder->options.values[i] : NULL;
        if (bytes && !(values[i] = input_tensor(folder, i, bytes, error)))
            return FALSE;
    }
    KilnDigest key = { 0, 0 };
    if (folder->options.directory) {
        if (!digest_code(folder, now, &key, error))
            return FALSE;
        g_autofree bool *reads = g_new0(bool, folder->n_values + 1);
        for (guint i = 0; i < now->calls->len; i++)
            mark(g_array_index(now->calls, KilnFoldCall, i).operands, reads);
        add_inputs(folder, reads, values, &key);
    }
    return !now->calls->len || evaluate(folder, now, &key, values, NULL, error);
}

/* The type of value @number; NULL where nothing makes it. */
static const KilnType *
type_of(const KilnFolder *folder, const KilnFoldGroup *groups[2], uint32_t number)
{
    if (number < folder->n_inputs)
        return &folder->input_types[number];
    for (int g = 0; g < 2; g++) {
        for (guint i = 0; i < groups[g]->calls->len; i++) {
            const KilnFoldCall *call = &g_array_index(groups[g]->calls, KilnFoldCall, i);
            uint32_t r = number - call->first_result;
            if (number >= call->first_result && r < call->function->outputs->len)
                return &((KilnBuffer *)g_ptr_array_index(call->function->outputs, r))->type;
        }
    }
    return NULL;
}

/* What @function takes lies in memory as it expects: at this level a text may say anything. */
static gboolean
check_inputs(const KilnFolder *folder, const KilnFoldGroup *groups[2],
             const KilnIRFunction *function, const GArray *numbers, GError **error)
{
    if (numbers->len != function->inputs->len)
        return kiln_throw(error, KILN_ERROR_INVALID, "fold: @%s: expected %u inputs, found %u",
                          function->name, numbers->len, function->inputs->len);
    for (guint i = 0; i < numbers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->inputs, i);
        const KilnType *type = type_of(folder, groups, g_array_index(numbers, uint32_t, i));
        if (type && type->dtype == buffer->type.dtype &&
            kiln_type_bytes(type) == kiln_type_bytes(&buffer->type))
            continue;
        g_autofree char *expected = kiln_type_to_string(&buffer->type);
        g_autofree char *found = type ? kiln_type_to_string(type) : g_strdup("nothing");
        return kiln_throw(error, KILN_ERROR_INVALID, "fold: @%s: input @%s: expected %s, found %s",
                          function->name, buffer->name, expected, found);
    }
    return TRUE;
}

static gboolean
check_calls(const KilnFolder *folder, const KilnFoldGroup *now, GError **error)
{
    const KilnFoldGroup *groups[2] = { now, &folder->left };
    for (int g = 0; g < 2; g++) {
        for (guint i = 0; i < groups[g]->calls->len; i++) {
            const KilnFoldCall *call = &g_array_index(groups[g]->calls, KilnFoldCall, i);
            if (!check_inputs(folder, groups, call->function, call->operands, error))
                return FALSE;
        }
    }
    return check_inputs(folder, groups, entry_of(folder), folder->entry, error);
}

static void
embed_all(KilnFolder *folder, KilnTensor *const *values)
{
    g_autofree KilnConstant **constants = g_new0(KilnConstant *, folder->n_values + 1);
    embed(entry_of(folder), folder->entry, values, constants);
    for (guint i = 0; i < folder->left.calls->len; i++) {
        const KilnFoldCall *call = &g_array_index(folder->left.calls, KilnFoldCall, i);
        embed(call->function, call->operands, values, constants);
    }
}

/* The pass choose-algorithms took values that were not there yet for finite. */
static gboolean
settle_algorithms(KilnIRFunction *entry, GError **error)
{
    GError *failure = NULL;
    kiln_foreach_instr (instr, entry) {
        const char **algorithm =
            instr->kind == KILN_INSTR_conv ? &kiln_instr_attrs(instr, conv)->algorithm : NULL;
        if (algorithm && strcmp(*algorithm, "direct") != 0 &&
            !kiln_buffer_is_finite(kiln_instr_operand(instr, 2), &failure)) {
            *algorithm = "direct";
            kiln_instr_touch(instr);
        }
        if (failure) {
            g_propagate_error(error, failure);
            return FALSE;
        }
    }
    return TRUE;
}

/* What stays for the first run: marks are those of values that the entry reads. */
static gboolean
settle_left(KilnFolder *folder, bool *wanted, GError **error)
{
    memset(wanted, 0, folder->n_values * sizeof *wanted);
    mark(folder->entry, wanted);
    if (!find_results(&folder->left, wanted, error))
        return FALSE;
    memset(wanted, 0, folder->n_values * sizeof *wanted);
    for (guint i = 0; i < folder->left.calls->len; i++)
        mark(g_array_index(folder->left.calls, KilnFoldCall, i).operands, wanted);
    memcpy(folder->reads, wanted, folder->n_inputs * sizeof *wanted);
    folder->plain = g_new0(bool, folder->left.results->len + 1);
    return TRUE;
}

static gboolean
fold_now(KilnFolder *folder, GError **error)
{
    g_auto(KilnFoldGroup) now = { 0 };
    group_init(&now);
    if (!divide_calls(folder, &now, error) || !check_calls(folder, &now, error))
        return FALSE;
    g_autofree bool *wanted = g_new0(bool, folder->n_values + 1);
    mark(folder->entry, wanted);
    for (guint i = 0; i < folder->left.calls->len; i++)
        mark(g_array_index(folder->left.calls, KilnFoldCall, i).operands, wanted);
    if (!find_results(&now, wanted, error))
        return FALSE;
    KilnTensor **values = g_new0(KilnTensor *, folder->n_values + 1);
    gboolean good = compute_known(folder, &now, values, error);
    if (good)
        embed_all(folder, values);
    free_values(folder, values);
    good = good && settle_algorithms(entry_of(folder), error);
    if (!good || !settle_left(folder, wanted, error))
        return FALSE;
    kiln_folder_write_table(folder);
    return TRUE;
}

/* The inputs of an open program stand where its entry does while its functions are looked at. Then
 * they have their expressions still. */
static gboolean
stand_inputs(KilnFolder *folder, GError **error)
{
    const KilnIRFunction *entry = entry_of(folder);
    for (uint32_t i = 0; entry->open && i < folder->n_inputs; i++) {
        KilnType *type = &folder->input_types[i];
        for (int d = 0; d < type->rank; d++) {
            if (type->open[d] &&
                !kiln_dim_evaluate(type->open[d], kiln_dim_binding_lookup,
                                   (void *)kiln_open_binding(entry), &type->dims[d], error))
                return FALSE;
        }
    }
    return TRUE;
}

KilnFolder *
kiln_folder_new(KilnIRModule *ir, const KilnFoldOptions *options, GError **error)
{
    g_autoptr(KilnFolder) folder = g_new0(KilnFolder, 1);
    folder->ir = ir;
    folder->options = *options;
    folder->entry = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    folder->packings = kiln_late_packings_new();
    group_init(&folder->left);
    pthread_mutex_init(&folder->lock, NULL);
    read_signature(folder);
    if (!stand_inputs(folder, error))
        return NULL;
    return fold_now(folder, error) ? g_steal_pointer(&folder) : NULL;
}

void
kiln_folder_free(KilnFolder *folder)
{
    if (!folder)
        return;
    kiln_folder_forget(folder);
    pthread_mutex_destroy(&folder->lock);
    g_clear_pointer(&folder->functions, g_ptr_array_unref);
    group_clear(&folder->left);
    g_array_unref(folder->packings);
    g_array_unref(folder->entry);
    g_free(folder->plain);
    g_free(folder->input_names);
    g_free(folder->input_types);
    g_free(folder->reads);
    g_free(folder);
}

/* --- at the first run --- */

typedef struct {
    const KilnFolder *folder;
    const KilnDigest *key;
    KilnTensor **values; /* by number: the inputs */
    atomic_ullong *runs;
} Fill;

/* Literals of the calls are read again after an eviction only. */
static void
drop_literals(const KilnFoldGroup *group)
{
    for (guint i = 0; i < group->calls->len; i++) {
        const KilnIRFunction *function = g_array_index(group->calls, KilnFoldCall, i).function;
        for (guint w = 0; w < function->weights->len; w++) {
            const KilnBuffer *weight = g_ptr_array_index(function->weights, w);
            if (weight->constant && weight->constant->tensor)
                kiln_tensor_drop_pages(weight->constant->tensor);
        }
    }
}

/* Result @i of the calls; without its bytes where only what is packed of it is read. */
static KilnTensor *
take_result(const Fill *fill, guint i)
{
    const KilnFolder *folder = fill->folder;
    uint32_t number = g_array_index(folder->left.results, uint32_t, i);
    KilnTensor *tensor = g_steal_pointer(&fill->values[number]);
    if (!folder->plain[i]) {
        g_bytes_unref(tensor->bytes);
        tensor->bytes = g_bytes_new_static("", 0);
    }
    return tensor;
}

/* A KilnCacheFill. */
static gboolean
fill(void *data, KilnCacheFilled *out, GError **error)
{
    const Fill *fill = data;
    const KilnFolder *folder = fill->folder;
    const KilnFoldGroup *left = &folder->left;
    if ((left->calls->len && !evaluate(folder, left, fill->key, fill->values, fill->runs, error)) ||
        !kiln_folder_pack(folder, fill->values, out + left->results->len, error))
        return FALSE;
    for (guint i = 0; i < left->results->len; i++)
        out[i].tensor = take_result(fill, i);
    drop_literals(left);
    return TRUE;
}

bool
kiln_folder_code(KilnFolder *folder, KilnDigest *out, GError **error)
{
    pthread_mutex_lock(&folder->lock);
    if (!folder->has_code) {
        folder->has_code = digest_code(folder, &folder->left, &folder->code, error);
        kiln_folder_digest_packings(folder, &folder->code);
    }
    bool good = folder->has_code;
    *out = folder->code;
    pthread_mutex_unlock(&folder->lock);
    return good;
}

static gboolean
key_of(KilnFolder *folder, KilnTensor *const *values, KilnDigest *out, GError **error)
{
    if (!kiln_folder_code(folder, out, error))
        return FALSE;
    add_inputs(folder, folder->reads, values, out);
    return TRUE;
}

/* Keeps @entry alive in the open folder, in the place of the oldest one. */
static void
keep_among(KilnFolder *open, KilnCacheEntry *entry)
{
    KilnCacheEntry *old = NULL;
    guint at;
    pthread_mutex_lock(&open->lock);
    if (!open->kept)
        open->kept = g_ptr_array_new();
    if (g_ptr_array_find(open->kept, entry, &at))
        g_ptr_array_remove_index(open->kept, at);
    else if (kiln_cache_entry_ref(entry) && open->kept->len == KILN_KEPT_CONSTANTS)
        old = g_ptr_array_remove_index(open->kept, 0);
    g_ptr_array_add(open->kept, entry);
    pthread_mutex_unlock(&open->lock);
    if (old)
        kiln_cache_entry_unref(old);
}

/* Keeps @entry alive from one session to the next. */
static void
keep(KilnFolder *folder, KilnCacheEntry *entry)
{
    if (folder->open && entry)
        keep_among(folder->open, entry);
    if (folder->open)
        return;
    pthread_mutex_lock(&folder->lock);
    KilnCacheEntry *old = folder->latest == entry ? NULL : folder->latest;
    if (folder->latest != entry)
        folder->latest = entry ? kiln_cache_entry_ref(entry) : NULL;
    pthread_mutex_unlock(&folder->lock);
    if (old)
        kiln_cache_entry_unref(old);
}

void
kiln_folder_forget(KilnFolder *folder)
{
    pthread_mutex_lock(&folder->lock);
    GPtrArray *kept = g_steal_pointer(&folder->kept);
    pthread_mutex_unlock(&folder->lock);
    for (guint i = 0; kept && i < kept->len; i++)
        kiln_cache_entry_unref(g_ptr_array_index(kept, i));
    if (kept)
        g_ptr_array_unref(kept);
    keep(folder, NULL);
}

static KilnCacheEntry *
acquire(KilnFolder *folder, KilnConstantCache *cache, Fill *fold, GError **error)
{
    KilnDigest key;
    if (!key_of(folder, fold->values, &key, error))
        return NULL;
    fold->key = &key;
    uint32_t n = kiln_folder_n_buffers(folder);
    KilnCacheEntry *entry = kiln_constant_cache_acquire(cache, &key, n, fill, fold, error);
    if (entry)
        keep(folder, entry);
    return entry;
}

KilnCacheEntry *
kiln_folder_acquire(KilnFolder *folder, KilnConstantCache *cache, const void *const *data,
                    atomic_ullong *runs, GError **error)
{
    g_autoptr(KilnBudget) budget = kiln_budget_new(&folder->options.limits);
    KilnBudget *before = kiln_budget_enter(budget);
    KilnTensor **values = g_new0(KilnTensor *, folder->n_values + 1);
    gboolean good = TRUE;
    for (uint32_t i = 0; good && i < folder->n_inputs; i++) {
        if (!folder->reads[i])
            continue;
        size_t size = (size_t)kiln_type_bytes(&folder->input_types[i]);
        g_autoptr(GBytes) bytes = g_bytes_new_static(data[i], size);
        values[i] = input_tensor(folder, i, bytes, error);
        good = values[i] != NULL;
    }
    Fill fold = { .folder = folder, .values = values, .runs = runs };
    KilnCacheEntry *entry = good ? acquire(folder, cache, &fold, error) : NULL;
    free_values(folder, values);
    kiln_budget_leave(before);
    return entry;
}

void
kiln_folder_count_readers(const KilnFolder *folder, uint32_t *readers)
{
    for (guint i = 0; i < folder->left.calls->len; i++) {
        const KilnIRFunction *function =
            g_array_index(folder->left.calls, KilnFoldCall, i).function;
        for (guint w = 0; w < function->weights->len; w++) {
            const KilnBuffer *weight = g_ptr_array_index(function->weights, w);
            if (weight->constant)
                readers[weight->constant->id]++;
        }
    }
}

uint32_t
kiln_folder_buffer(const KilnFolder *folder, uint32_t number)
{
    uint32_t i = 0;
    while (g_array_index(folder->left.results, uint32_t, i) != number)
        i++;
    return i;
}
