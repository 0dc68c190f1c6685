/* SPDX-License-Identifier: Apache-2.0 */
/* Models: loading, and what their inputs and outputs are. */
#include "runtime/model.h"

#include "graph/base/budget.h"
#include "graph/grow/reserve.h"
#include "graph/module/folding.h"
#include "graph/module/hints.h"
#include "graph/onnx/onnx.h"
#include "graph/text/text.h"
#include "ir/text/json.h"
#include "runtime/options.h"
#include "runtime/program_file.h"
#include "runtime/scope.h"
#include "runtime/tensors/file.h"

/* The name or the expression that an open dim is; NULL for others. */
static char *
dim_text(const KilnType *type, int d)
{
    const char *name = kiln_type_dim_name(type, d);
    return name ? g_strdup(name) : type->open[d] ? kiln_dim_to_string(type->open[d]) : NULL;
}

void
kiln_info_list_init(KilnInfoList *list, unsigned n, const char *const *names, const KilnType *types)
{
    list->n = n;
    list->info = g_new0(KilnTensorInfo, n);
    list->types = g_new0(KilnType, n);
    list->contents = g_new0(char *, n);
    list->dim_texts = g_new0(char *, (size_t)n *KILN_MAX_RANK);
    for (unsigned i = 0; i < n; i++) {
        KilnType *type = &list->types[i];
        char **texts = list->dim_texts + (size_t)i * KILN_MAX_RANK;
        *type = types[i];
        for (int d = 0; d < type->rank; d++)
            texts[d] = dim_text(type, d);
        if (type->contents)
            list->contents[i] = kiln_type_to_string(type);
        list->info[i] = (KilnTensorInfo){ .size = sizeof(KilnTensorInfo),
                                          .name = names[i],
                                          .dtype = type->dtype,
                                          .rank = type->rank,
                                          .dims = type->dims,
                                          .dim_names = (const char *const *)texts,
                                          .bytes = kiln_type_bytes(type),
                                          .contents = list->contents[i] };
    }
}

void
kiln_info_list_clear(KilnInfoList *list)
{
    for (size_t i = 0; i < (size_t)list->n * KILN_MAX_RANK; i++)
        g_free(list->dim_texts[i]);
    for (unsigned i = 0; i < list->n; i++)
        g_free(list->contents[i]);
    g_clear_pointer(&list->contents, g_free);
    g_clear_pointer(&list->dim_texts, g_free);
    g_clear_pointer(&list->info, g_free);
    g_clear_pointer(&list->types, g_free);
    list->n = 0;
}

/* @arguments: KilnArgument* */
static void
list_arguments(KilnInfoList *list, const GPtrArray *arguments)
{
    guint n = arguments->len;
    g_autofree const char **names = g_new0(const char *, n + 1);
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    for (guint i = 0; i < n; i++) {
        const KilnValue *value = &((KilnArgument *)g_ptr_array_index(arguments, i))->value;
        names[i] = value->name;
        types[i] = value->type;
    }
    kiln_info_list_init(list, n, names, types);
}

void
kiln_info_list_copy(KilnInfoList *to, const KilnInfoList *from)
{
    g_autofree const char **names = g_new0(const char *, from->n + 1);
    for (unsigned i = 0; i < from->n; i++)
        names[i] = from->info[i].name;
    kiln_info_list_clear(to);
    kiln_info_list_init(to, from->n, names, from->types);
}

void
kiln_info_list_state_contents(KilnInfoList *list, const KilnInfoList *stated)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (!list->contents[i])
            continue;
        list->types[i] = stated->types[i];
        g_free(list->contents[i]);
        list->info[i].contents = list->contents[i] = g_strdup(stated->contents[i]);
        list->info[i].dtype = stated->info[i].dtype;
        list->info[i].rank = stated->info[i].rank;
        list->info[i].bytes = stated->info[i].bytes;
    }
}

void
kiln_info_lists_of_graph(const KilnModule *module, KilnInfoList *inputs, KilnInfoList *outputs)
{
    list_arguments(inputs, kiln_module_inputs(module));
    const KilnFunction *entry = kiln_module_entry(module);
    const KilnNode *result = kiln_function_return(entry);
    guint n = result ? result->n_operands : 0;
    g_autofree const char **output_names = g_new0(const char *, n + 1);
    g_autofree KilnType *output_types = g_new0(KilnType, n + 1);
    for (guint i = 0; i < n; i++) {
        output_names[i] = g_ptr_array_index(entry->result_names, i);
        output_types[i] = result->operands[i].value->type;
    }
    kiln_info_list_init(outputs, n, output_names, output_types);
}

/* An open function stands at one binding; a program takes others, too. */
static KilnType
type_outside(const KilnBuffer *buffer)
{
    KilnType type = buffer->unpacked ? *kiln_type_element(&buffer->type) : buffer->type;
    for (int d = 0; d < type.rank; d++) {
        if (type.open[d])
            type.dims[d] = KILN_DIM_UNKNOWN;
    }
    return type;
}

static void
list_buffers(KilnInfoList *list, const GPtrArray *buffers)
{
    g_autofree const char **names = g_new0(const char *, buffers->len + 1);
    g_autofree KilnType *types = g_new0(KilnType, buffers->len + 1);
    for (guint i = 0; i < buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(buffers, i);
        names[i] = buffer->name;
        types[i] = type_outside(buffer);
    }
    kiln_info_list_init(list, buffers->len, names, types);
}

static void
take_metadata(KilnModel *model, const char *graph_name)
{
    model->metadata = model->module->metadata;
    model->metadata.graph_name = graph_name;
}

static void
guess_hints(const KilnModel *model)
{
    for (unsigned i = 0; i < model->inputs.n; i++)
        kiln_guess_hints(&model->inputs.types[i]);
}

void
kiln_model_take_ir(KilnModel *model, KilnIRModule *ir)
{
    const KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    model->ir = ir;
    model->module = ir->module;
    if (model->module->folding)
        list_arguments(&model->inputs, model->module->folding->signature);
    else
        list_buffers(&model->inputs, entry->inputs);
    list_buffers(&model->outputs, entry->outputs);
    guess_hints(model);
    take_metadata(model, entry->name);
}

static void
take_module(KilnModel *model)
{
    kiln_info_lists_of_graph(model->module, &model->inputs, &model->outputs);
    guess_hints(model);
    take_metadata(model, kiln_module_entry(model->module)->name);
}

KilnModel *
kiln_model_beside(const KilnModel *model, KilnModule *module, GError **error)
{
    KilnModel *beside = kiln_model_new(model->name, error);
    if (!beside) {
        kiln_module_free(module);
        return NULL;
    }
    kiln_constant_cache_unref(beside->cache);
    beside->cache = kiln_constant_cache_ref(model->cache);
    beside->map = model->map ? g_bytes_ref(model->map) : NULL;
    beside->module = module;
    take_module(beside);
    return beside;
}

/* @path NULL: the text stands in no file. A .kiln text is at the IR level if it has a `func` block.
 */
static gboolean
load_text(KilnModel *model, GBytes *bytes, const char *path, GError **error)
{
    size_t length;
    const char *text = g_bytes_get_data(bytes, &length);
    g_autoptr(KilnIRModule) ir = path
                                     ? kiln_ir_module_parse(text, length, path, error)
                                     : kiln_ir_module_parse_alone(text, length, model->name, error);
    if (!ir)
        return FALSE;
    if (ir->functions->len) {
        model->ir_text = g_bytes_ref(bytes);
        kiln_model_take_ir(model, g_steal_pointer(&ir));
        return TRUE;
    }
    model->module = g_steal_pointer(&ir->module);
    if (!kiln_module_entry(model->module))
        return kiln_throw(error, KILN_ERROR_PARSE, "%s: expected a graph or func block, found none",
                          model->name);
    if (!kiln_module_verify(model->module, error)) {
        kiln_prefix_error(error, "%s: ", model->name);
        return FALSE;
    }
    take_module(model);
    return TRUE;
}

static gboolean
load_onnx(KilnModel *model, GBytes *bytes, const char *path, const KilnModelOptions *options,
          GError **error)
{
    const KilnOnnxOptions onnx = { .alone = options->no_external_data,
                                   .newer_opsets = options->accept_newer_opsets };
    model->module = kiln_onnx_import_with(bytes, path, &onnx, error);
    if (!model->module) {
        if (!path)
            kiln_prefix_error(error, "%s: ", model->name);
        return FALSE;
    }
    take_module(model);
    return TRUE;
}

static bool
is_text(GBytes *bytes, const char *name)
{
    size_t length;
    const char *data = g_bytes_get_data(bytes, &length);
    if (g_str_has_suffix(name, ".kiln"))
        return true;
    return !g_str_has_suffix(name, ".onnx") && kiln_text_is_module(data, length);
}

KilnModel *
kiln_model_new(const char *name, GError **error)
{
    if (!kiln_reserve_hold(error)) {
        g_prefix_error(error, "%s: ", name ? name : "(memory)");
        return NULL;
    }
    KilnModel *model = g_new0(KilnModel, 1);
    atomic_init(&model->references, 1);
    model->name = g_strdup(name ? name : "(memory)");
    model->cache = kiln_constant_cache_new(-1);
    return model;
}

/* Texts may name files and say anything; that they are small says nothing of what they ask for. */
static gboolean
check_kind(GBytes *bytes, const KilnModel *model, const KilnModelOptions *options, GError **error)
{
    return !options->onnx_only || !is_text(bytes, model->name) ||
           kiln_throw(error, KILN_ERROR_FORMAT,
                      "%s: expected an ONNX model, found a text, which is not trusted",
                      model->name);
}

/* @path: of the file that @bytes are, beside which others may lie; NULL: of none. */
static KilnModel *
load(GBytes *bytes, const char *name, const char *path, const KilnModelOptions *options,
     GError **error)
{
    g_autoptr(KilnModel) model = kiln_model_new(name, error);
    if (!model || !check_kind(bytes, model, options, error))
        return NULL;
    if (kiln_program_file_is(bytes))
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "%s: expected a model, found a compiled program", model->name);
    gboolean loaded = is_text(bytes, model->name) ? load_text(model, bytes, path, error)
                                                  : load_onnx(model, bytes, path, options, error);
    return loaded ? g_steal_pointer(&model) : NULL;
}

/* What has been read from memory or from a pipe is not to be found at @name again: a text of it
 * must not say so. */
static void
forget_origin(const KilnModel *model, const char *name)
{
    const GPtrArray *constants = model->module->constants;
    for (guint i = 0; i < constants->len; i++) {
        KilnTensor *tensor = ((KilnConstant *)g_ptr_array_index(constants, i))->tensor;
        if (name && g_strcmp0(tensor->file, name) == 0)
            g_clear_pointer(&tensor->file, g_free);
    }
}

static gboolean
copy_options(const KilnModelOptions *given, KilnModelOptions *copy, KilnBudget **out_budget,
             GError **error)
{
    static const KilnStructKind kind = KILN_STRUCT_KIND(KilnModelOptions, KILN_MODEL_OPTIONS_INIT);
    const KilnModelOptions defaults = KILN_MODEL_OPTIONS_INIT;
    if (!kiln_options_copy(&kind, given ? given : &defaults, copy, error))
        return FALSE;
    const KilnLimits limits = { copy->total_limit, copy->node_limit, copy->time_limit };
    if (!kiln_limits_check(&limits, error))
        return FALSE;
    *out_budget = kiln_budget_new(&limits);
    return TRUE;
}

static KilnModel *
load_within(GBytes *bytes, const char *name, const char *path, const KilnModelOptions *given,
            GError **error)
{
    KilnModelOptions options;
    g_autoptr(KilnBudget) budget = NULL;
    if (!copy_options(given, &options, &budget, error))
        return NULL;
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter_within(NULL, NULL, budget);
    KilnModel *model = load(bytes, name, path, &options, error);
    if (model)
        forget_origin(model, path);
    return model;
}

KilnModel *
kiln_model_load_bytes_with(GBytes *bytes, const char *name, const KilnModelOptions *options,
                           GError **error)
{
    return load_within(bytes, name, name, options, error);
}

KilnModel *
kiln_model_load_alone(GBytes *bytes, const char *name, const KilnModelOptions *options,
                      GError **error)
{
    return load_within(bytes, name, NULL, options, error);
}

KilnModel *
kiln_model_load_bytes(GBytes *bytes, const char *name, GError **error)
{
    return kiln_model_load_bytes_with(bytes, name, NULL, error);
}

/* The importer cannot tell a map from other memory: who mapped the file marks what lies in it. */
static void
mark_mapped(KilnModel *model, GBytes *map)
{
    gsize size;
    const char *start = g_bytes_get_data(map, &size);
    const KilnModule *module = model->module;
    for (guint i = 0; i < module->constants->len; i++) {
        KilnTensor *tensor = ((KilnConstant *)g_ptr_array_index(module->constants, i))->tensor;
        const char *data = tensor->bytes ? g_bytes_get_data(tensor->bytes, NULL) : NULL;
        if (!data || data < start || data >= start + size)
            continue;
        tensor->mapped = true;
        if (!model->map)
            model->map = g_bytes_ref(map);
    }
}

KilnModel *
kiln_model_load(const char *path, GError **error)
{
    return kiln_model_load_with(path, NULL, error);
}

KilnModel *
kiln_model_load_with(const char *path, const KilnModelOptions *given, GError **error)
{
    KilnModelOptions options;
    g_autoptr(KilnBudget) budget = NULL;
    if (!copy_options(given, &options, &budget, error))
        return NULL;
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter_within(NULL, NULL, budget);
    bool mapped;
    g_autoptr(GBytes) bytes = kiln_file_map_weights(path, &mapped, error);
    KilnModel *model = bytes ? load(bytes, path, path, &options, error) : NULL;
    if (model && mapped)
        mark_mapped(model, bytes);
    else if (model)
        forget_origin(model, path);
    return model;
}

KilnModel *
kiln_model_ref(KilnModel *model)
{
    atomic_fetch_add(&model->references, 1);
    return model;
}

void
kiln_model_unref(KilnModel *model)
{
    if (!model || atomic_fetch_sub(&model->references, 1) != 1)
        return;
    kiln_info_list_clear(&model->inputs);
    kiln_info_list_clear(&model->outputs);
    if (model->ir)
        kiln_ir_module_free(model->ir);
    else
        kiln_module_free(model->module);
    g_clear_pointer(&model->map, g_bytes_unref);
    g_clear_pointer(&model->ir_text, g_bytes_unref);
    kiln_constant_cache_unref(model->cache);
    g_free(model->name);
    g_free(model);
    kiln_reserve_release();
}

unsigned
kiln_model_n_inputs(const KilnModel *model)
{
    return model->inputs.n;
}

unsigned
kiln_model_n_outputs(const KilnModel *model)
{
    return model->outputs.n;
}

const KilnTensorInfo *
kiln_model_input(const KilnModel *model, unsigned i)
{
    return i < model->inputs.n ? &model->inputs.info[i] : NULL;
}

const KilnTensorInfo *
kiln_model_output(const KilnModel *model, unsigned i)
{
    return i < model->outputs.n ? &model->outputs.info[i] : NULL;
}

const char *const *
kiln_model_notes(const KilnModel *model)
{
    static const char *const none[] = { NULL };
    const GPtrArray *notes = model->module->notes;
    return notes ? (const char *const *)notes->pdata : none;
}

const KilnMetadata *
kiln_model_metadata(const KilnModel *model)
{
    return &model->metadata;
}
