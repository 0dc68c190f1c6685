/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/values.h"

#include "exec/eval.h"
#include "graph/base/item.h"
#include "graph/base/write_file.h"
#include "graph/module/folding.h"
#include "ir/target.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/compile.h"
#include "runtime/digest/digest.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/specialise.h"
#include "runtime/targets.h"
#include "runtime/tensors/item_compare.h"
#include "runtime/tensors/tensor_file.h"

#include <string.h>

enum {
    MAX_FILE_NAME = 200, /* bytes of a value's name in a file name */
};

/* --- parts of values --- */

static gboolean see_part(const KilnNamedValue *whole, KilnItem *item, KilnNamedValueFn see,
                         void *data, GError **error);

static gboolean
see_length(const KilnNamedValue *whole, size_t length, KilnNamedValueFn see, void *data,
           GError **error)
{
    const KilnType type = kiln_type_scalar(KILN_DTYPE_i64);
    const int64_t number = (int64_t)length;
    g_autoptr(KilnTensor) tensor = kiln_tensor_new_copy(&type, &number, error);
    g_autofree char *name = g_strconcat(whole->name, ".length", NULL);
    KilnNamedValue value = { name, whole->op, whole->of, "i64[]", tensor };
    return tensor && see(&value, data, error);
}

/* The parts of @item, which @whole names. */
static gboolean
see_parts(const KilnNamedValue *whole, KilnItem *item, KilnDType dtype, KilnNamedValueFn see,
          void *data, GError **error)
{
    static const char *const parts_of_map[] = { "keys", "values" };
    bool map = dtype == KILN_DTYPE_map;
    size_t n = kiln_item_length(item);
    if (!map && !see_length(whole, n, see, data, error))
        return FALSE;
    for (size_t i = 0; i < n; i++) {
        g_autofree char *name = map ? g_strdup_printf("%s.%s", whole->name, parts_of_map[i])
                                    : g_strdup_printf("%s[%zu]", whole->name, i);
        const KilnNamedValue part = { name, whole->op, whole->of, NULL, NULL };
        if (!see_part(&part, kiln_item_get(item, i), see, data, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
see_part(const KilnNamedValue *whole, KilnItem *item, KilnNamedValueFn see, void *data,
         GError **error)
{
    KilnDType dtype = kiln_item_dtype(item);
    if (kiln_dtype_is_item(dtype))
        return see_parts(whole, item, dtype, see, data, error);
    g_autoptr(KilnTensor) tensor = kiln_item_as_tensor(item, error);
    g_autofree char *type = tensor ? kiln_type_to_string(&tensor->type) : NULL;
    KilnNamedValue value = { whole->name, whole->op, whole->of, type, tensor };
    return tensor && see(&value, data, error);
}

/* @value, or its parts. */
static gboolean
see_all(const KilnNamedValue *value, KilnNamedValueFn see, void *data, GError **error)
{
    KilnDType dtype = value->tensor->type.dtype;
    return kiln_dtype_is_item(dtype)
               ? see_parts(value, kiln_tensor_item(value->tensor), dtype, see, data, error)
               : see(value, data, error);
}

/* --- of a model --- */

/* The type of @value with the numbers of @tensor: expressions of two graphs may differ. */
static char *
type_of(const KilnValue *value, const KilnTensor *tensor)
{
    KilnType type = value->type;
    for (int d = 0; d < type.rank && type.rank == tensor->type.rank; d++) {
        if (type.open[d])
            type.dims[d] = tensor->type.dims[d];
        type.open[d] = NULL;
    }
    return kiln_type_to_string(&type);
}

static gboolean
see_value(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    const KilnValueWatcher *watcher = data;
    if (value->def->op == KILN_OP_const)
        return TRUE;
    g_autofree char *type = type_of(value, *io_tensor);
    g_autoptr(KilnTensor) handle = kiln_tensor_copy(*io_tensor);
    KilnNamedValue named = { value->name, kiln_op_info(value->def->op)->name, value->name, type,
                             handle };
    return see_all(&named, watcher->see, watcher->data, error);
}

static GBytes *
element_rank_of(const KilnTensor *tensor)
{
    const int64_t rank = kiln_item_element_rank(kiln_tensor_item(tensor));
    return g_bytes_new(&rank, sizeof rank);
}

/* What a run with @inputs is specialised for. Dims that @open leaves open stay so, unless it is
 * NULL. The bytes that bindings point to go to @kept. */
static KilnBinding *
bindings_of(const KilnModel *model, const KilnBinding *open, const GPtrArray *inputs,
            GPtrArray *kept, GError **error)
{
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, model->inputs.n + 1);
    g_autofree bool *decides = kiln_value_inputs(model->module);
    for (unsigned i = 0; i < model->inputs.n; i++) {
        const KilnTensor *tensor = g_ptr_array_index(inputs, i);
        bindings[i].rank = tensor->type.rank;
        memcpy(bindings[i].dims, tensor->type.dims, sizeof bindings[i].dims);
        if (open && !decides[i])
            bindings[i] = open[i];
        if (!decides[i])
            continue;
        GBytes *bytes = kiln_dtype_is_item(tensor->type.dtype) ? element_rank_of(tensor)
                                                               : kiln_tensor_view(tensor, error);
        if (!bytes)
            return NULL;
        g_ptr_array_add(kept, bytes);
        bindings[i].data = g_bytes_get_data(bytes, NULL);
    }
    return g_steal_pointer(&bindings);
}

/* What is given from outside, and what fold functions gave: tensors by name. */
typedef struct {
    GPtrArray *names;
    GPtrArray *tensors; /* KilnTensor*, owned */
} Known;

static void
free_tensor(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

static void
known_clear(Known *known)
{
    g_ptr_array_unref(known->names);
    g_ptr_array_unref(known->tensors);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Known, known_clear)

static void
add_known(Known *known, const char *name, KilnTensor *tensor)
{
    g_ptr_array_add(known->names, (char *)name);
    g_ptr_array_add(known->tensors, tensor);
}

static KilnTensor *
find_known(const Known *known, const char *name)
{
    for (guint i = 0; i < known->names->len; i++) {
        if (strcmp(g_ptr_array_index(known->names, i), name) == 0)
            return g_ptr_array_index(known->tensors, i);
    }
    return NULL;
}

/* Calls the functions that compute constants ahead of the entry. */
static gboolean
call_folds(const KilnModule *module, const KilnTarget *target, Known *known, GError **error)
{
    const KilnFolding *folding = module->folding;
    for (guint f = 0; folding && f < folding->folds->len; f++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, f);
        g_autofree const KilnTensor **operands = g_new0(const KilnTensor *, fold->n_operands + 1);
        g_autofree KilnTensor **results = g_new0(KilnTensor *, fold->n_results + 1);
        for (uint32_t i = 0; i < fold->n_operands; i++)
            operands[i] = find_known(known, kiln_folding_name(folding, fold->operands[i]));
        if (!kiln_graph_evaluate(kiln_module_find_function(module, fold->function), target,
                                 operands, results, error))
            return FALSE;
        for (uint32_t r = 0; r < fold->n_results; r++)
            add_known(known, fold->results[r], results[r]);
    }
    return TRUE;
}

/* How the graph of a model is made. */
typedef struct {
    const KilnModel *model;
    const KilnPassPipeline *passes;
    const KilnPassOptions *options;
    const GPtrArray *inputs;
} Making;

/* @open: see bindings_of(). */
static KilnModule *
make_graph(const Making *making, const KilnBinding *open, KilnPassReport *report, GError **error)
{
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autofree KilnBinding *bindings =
        bindings_of(making->model, open, making->inputs, kept, error);
    return bindings ? kiln_compile_graph(making->model, bindings, making->passes, making->options,
                                         report, error)
                    : NULL;
}

/* Whether a program of the model keeps dims open: some are, and there is code for them. */
static bool
stays_open(const Making *making, const KilnBinding *bindings)
{
    const KilnModel *model = making->model;
    bool open = false;
    for (unsigned i = 0; i < model->inputs.n; i++)
        open |= !kiln_type_is_static(&model->inputs.types[i]) && kiln_binding_is_open(&bindings[i]);
    KilnModule *module = open ? make_graph(making, bindings, NULL, NULL) : NULL;
    g_autoptr(KilnIRModule) ir =
        module ? kiln_compile_ir(module, making->passes, making->options, NULL, NULL) : NULL;
    return ir != NULL;
}

KilnModule *
kiln_values_optimize(KilnOptions *options, const KilnModel *model, const KilnPipeline *pipeline,
                     const GPtrArray *inputs, KilnPassReport *report, GError **error)
{
    KilnPassOptions pass_options;
    if (model->ir_text)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "values have names at the graph level only: %s is at the ir level",
                               model->name);
    g_autofree KilnBinding *bindings = kiln_options_bindings(options, model, error);
    if (!bindings || !kiln_options_passes(options, pipeline, &pass_options, error))
        return NULL;
    const Making making = { model, pipeline->passes, &pass_options, inputs };
    return make_graph(&making, stays_open(&making, bindings) ? bindings : NULL, report, error);
}

gboolean
kiln_values_of_graph(const KilnOptions *options, const KilnModel *model, const KilnModule *module,
                     const GPtrArray *inputs, const KilnValueWatcher *watcher, GError **error)
{
    const KilnTarget *target =
        kiln_target_by_name(options->backend ? options->backend : "cpu", error);
    if (!target)
        return FALSE;
    const KilnFunction *entry = kiln_module_entry(module);
    g_auto(Known) known = { g_ptr_array_new(), g_ptr_array_new_with_free_func(free_tensor) };
    for (unsigned i = 0; i < model->inputs.n; i++)
        add_known(&known, model->inputs.info[i].name,
                  kiln_tensor_copy(g_ptr_array_index(inputs, i)));
    if (!call_folds(module, target, &known, error))
        return FALSE;
    g_autoptr(GPtrArray) arguments = g_ptr_array_new();
    for (guint a = 0; a < entry->arguments->len; a++)
        g_ptr_array_add(arguments,
                        find_known(&known, kiln_function_argument(entry, a)->value.name));
    const KilnWatch watch = { see_value, (void *)watcher, watcher->only };
    return kiln_graph_watch(entry, target, (const KilnTensor *const *)arguments->pdata, &watch,
                            NULL, error);
}

gboolean
kiln_values_of_outputs(const KilnProgram *program, const GPtrArray *outputs, KilnNamedValueFn see,
                       void *data, GError **error)
{
    for (unsigned i = 0; i < outputs->len; i++) {
        KilnTensor *tensor = g_ptr_array_index(outputs, i);
        g_autofree char *name = g_strconcat("output ", program->outputs.info[i].name, NULL);
        g_autofree char *type = kiln_type_to_string(&tensor->type);
        if (!see_all(&(KilnNamedValue){ name, "output", name, type, tensor }, see, data, error))
            return FALSE;
    }
    return TRUE;
}

/* --- in a folder --- */

gboolean
kiln_value_dump_open(KilnValueDump *dump, const char *dir, GError **error)
{
    *dump = (KilnValueDump){ .dir = dir };
    if (!kiln_folder_make(dir, 0777, error))
        return FALSE;
    g_autoptr(GError) inner = NULL;
    g_autoptr(GDir) folder = g_dir_open(dir, 0, &inner);
    if (!folder)
        return kiln_throw(error, KILN_ERROR_IO, "%s", inner->message);
    const char *first = g_dir_read_name(folder);
    return !first ||
           kiln_throw(error, KILN_ERROR_IO, "%s: expected an empty folder, found %s", dir, first);
}

/* @name as a file name. File systems have 255 bytes for one: of a longer one its beginning, and a
 * digest of the whole, so that equal names stay equal and others do not become so. */
static char *
file_name(const char *name)
{
    g_autofree char *escaped = g_uri_escape_string(name, NULL, TRUE);
    if (strlen(escaped) <= MAX_FILE_NAME)
        return g_steal_pointer(&escaped);
    KilnDigest digest = kiln_digest(name, strlen(name));
    size_t kept = MAX_FILE_NAME;
    while (escaped[kept - 1] == '%' || escaped[kept - 2] == '%' || (escaped[kept] & 0xC0) == 0x80)
        kept--; /* no half of "%2F", no part of a character */
    return g_strdup_printf("%.*s~%016" G_GINT64_MODIFIER "x", (int)kept, escaped, digest.low);
}

gboolean
kiln_value_dump_write(const KilnNamedValue *value, void *data, GError **error)
{
    KilnValueDump *dump = data;
    g_autofree char *name = file_name(value->name);
    g_autofree char *stem = g_strdup_printf("%s/%04u-%s", dump->dir, dump->n++, name);
    g_autofree char *npy = g_strconcat(stem, ".npy", NULL);
    g_autofree char *pb = g_strconcat(stem, ".pb", NULL);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GError) inner = NULL;
    const char *path = npy;
    if (!kiln_tensor_file_encode(npy, value->name, value->tensor, bytes, &inner)) {
        if (!g_error_matches(inner, KILN_ERROR, KILN_ERROR_UNSUPPORTED)) {
            g_propagate_error(error, g_steal_pointer(&inner));
            return FALSE;
        }
        path = pb;
        g_byte_array_set_size(bytes, 0);
        if (!kiln_tensor_file_encode(pb, value->name, value->tensor, bytes, error))
            return FALSE;
    }
    return kiln_file_write(path, bytes->data, bytes->len, error);
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The name of the value in "0012-NAME.npy"; NULL where the file holds no tensor. */
static char *
name_in_file(const char *file)
{
    if (!g_str_has_suffix(file, ".npy") && !g_str_has_suffix(file, ".pb"))
        return NULL;
    size_t digits = strspn(file, "0123456789");
    const char *start = digits && file[digits] == '-' ? file + digits + 1 : file;
    g_autofree char *stem = g_strndup(start, (size_t)(strrchr(start, '.') - start));
    char *name = g_uri_unescape_string(stem, NULL);
    return name ? name : g_steal_pointer(&stem);
}

gboolean
kiln_values_of_folder(const char *dir, KilnNamedValueFn see, void *data, GError **error)
{
    g_autoptr(GError) inner = NULL;
    g_autoptr(GDir) folder = g_dir_open(dir, 0, &inner);
    if (!folder)
        return kiln_throw(error, KILN_ERROR_IO, "%s: expected a folder of values: %s", dir,
                          inner->message);
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    for (const char *file; (file = g_dir_read_name(folder));)
        g_ptr_array_add(files, g_strdup(file));
    g_ptr_array_sort(files, compare_names);
    for (guint i = 0; i < files->len; i++) {
        g_autofree char *name = name_in_file(g_ptr_array_index(files, i));
        if (!name)
            continue;
        g_autofree char *path = g_build_filename(dir, g_ptr_array_index(files, i), NULL);
        g_autoptr(KilnTensor) tensor = kiln_tensor_file_load(path, NULL, NULL, error);
        if (!tensor ||
            !see(&(KilnNamedValue){ .name = name, .of = name, .tensor = tensor }, data, error))
            return FALSE;
    }
    return TRUE;
}
