/* SPDX-License-Identifier: Apache-2.0 */
/* From a parsed ONNX file to a module: graphs become functions, initializers constants. */
#include "graph/function.h"
#include "graph/node.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"

#include "graph/base/budget.h"
#include "graph/grow/reserve.h"
#include "graph/base/map_file.h"
#include "graph/onnx/import.h"
#include "graph/onnx/opset.h"
#include "graph/onnx/tensor.h"
#include "graph/op/structure.h"

/* --- one graph --- */

/* True unless @type leaves out the shape that @known has. */
static bool
says_more(const Onnx__TypeProto *type, const Onnx__TypeProto *known)
{
    const int tensor = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    return (int)type->value_case != tensor || (int)known->value_case != tensor ||
           type->tensor_type->shape || !known->tensor_type->shape;
}

static gboolean
check_depth(const KilnOnnxScope *scope, GError **error)
{
    return scope->depth <= KILN_ONNX_MAX_DEPTH ||
           kiln_throw(error, KILN_ERROR_LIMIT,
                      "graph '%s': expected at most %d graphs and functions inside each other, "
                      "found more",
                      scope->graph->name, KILN_ONNX_MAX_DEPTH);
}

static void
scope_init(KilnOnnxScope *scope, const KilnOnnxGraph *graph)
{
    scope->graph = graph;
    scope->depth = scope->outer ? scope->outer->depth + 1 : 0;
    if (!scope->frame)
        scope->frame = scope->outer ? scope->outer->frame : NULL;
    scope->values = g_hash_table_new(g_str_hash, g_str_equal);
    scope->types = g_hash_table_new(g_str_hash, g_str_equal);
    const GPtrArray *lists[] = { graph->values, graph->outputs };
    for (size_t k = 0; k < G_N_ELEMENTS(lists); k++) {
        for (guint i = 0; i < lists[k]->len; i++) {
            const Onnx__ValueInfoProto *info = g_ptr_array_index(lists[k], i);
            const Onnx__TypeProto *known = g_hash_table_lookup(scope->types, info->name);
            if (info->type && (!known || says_more(info->type, known)))
                g_hash_table_insert(scope->types, info->name, info->type);
        }
    }
}

static void
scope_clear(KilnOnnxScope *scope)
{
    g_hash_table_unref(scope->values);
    g_hash_table_unref(scope->types);
    if (scope->read)
        g_hash_table_unref(scope->read);
}

/* What stands for a constant of a type that Kiln does not have. */
static KilnValue *
unknown_constant(KilnOnnxScope *scope, const char *name, GError **failure, GError **error)
{
    if (!g_error_matches(*failure, KILN_ERROR, KILN_ERROR_UNSUPPORTED)) {
        g_propagate_error(error, g_steal_pointer(failure));
        return NULL;
    }
    KilnAttrs_unknown attrs = { .op_type = "Constant",
                                .domain = "",
                                .reason = (*failure)->message };
    attrs.opset = kiln_onnx_scope_opset(scope, "");
    KilnType type = kiln_type_unranked(KILN_DTYPE_f32);
    KilnNode *node = kiln_node_new(scope->function,
                                   &(KilnNodeSpec){ .op = KILN_OP_unknown,
                                                    .attrs = &attrs,
                                                    .result_name = kiln_onnx_shown(scope, name),
                                                    .types = &type },
                                   error);
    g_clear_error(failure);
    if (!node)
        return NULL;
    kiln_onnx_set_doubt(scope->import, &node->results[0], KILN_ONNX_OTHER);
    return &node->results[0];
}

static gboolean
import_constant(KilnOnnxScope *scope, const char *name, size_t offset, KilnTensor *tensor,
                GError **failure, GError **error)
{
    KilnValue *value = NULL;
    if (!name || !*name) {
        kiln_tensor_free(tensor);
        g_clear_error(failure);
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: an initializer has no name", offset);
    }
    if (tensor)
        value = kiln_build_constant(scope->function, NULL, kiln_onnx_shown(scope, name), tensor);
    else
        value = unknown_constant(scope, name, failure, error);
    return value && kiln_onnx_define(scope, name, value, error);
}

static gboolean
import_initializers(KilnOnnxScope *scope, GError **error)
{
    const KilnOnnxGraph *graph = scope->graph;
    for (guint i = 0; i < graph->initializers->len; i++) {
        const KilnOnnxTensor *row = &g_array_index(graph->initializers, KilnOnnxTensor, i);
        GError *failure = NULL;
        KilnTensor *tensor = kiln_onnx_tensor_load(row, &scope->import->files, &failure);
        if (!import_constant(scope, row->proto->name, row->offset, tensor, &failure, error))
            return FALSE;
    }
    for (guint i = 0; i < graph->sparse->len; i++) {
        const KilnOnnxSparse *row = &g_array_index(graph->sparse, KilnOnnxSparse, i);
        GError *failure = NULL;
        KilnTensor *tensor = kiln_onnx_sparse_load(row, &scope->import->files, &failure);
        if (!import_constant(scope, row->name, row->values.offset, tensor, &failure, error))
            return FALSE;
    }
    return TRUE;
}

static bool
has_name(const KilnFunction *function, const char *name)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnType *type = &kiln_function_argument(function, i)->value.type;
        for (int d = 0; d < type->rank; d++) {
            if (g_strcmp0(kiln_type_dim_name(type, d), name) == 0)
                return true;
        }
    }
    return false;
}

/* A name that only an input of a subgraph has may stand for another number in each iteration, and
 * for 0: nothing follows from it. */
static void
forget_inner_names(const KilnOnnxScope *scope, KilnType *type)
{
    const KilnOnnxScope *outermost = scope;
    while (outermost->outer)
        outermost = outermost->outer;
    for (int d = 0; d < type->rank && scope->outer; d++) {
        const char *name = kiln_type_dim_name(type, d);
        if (name && !has_name(outermost->function, name))
            kiln_type_set_dim(type, d, NULL);
    }
}

static gboolean
import_argument(KilnOnnxScope *scope, const Onnx__ValueInfoProto *info, const KilnType *otherwise,
                GError **error)
{
    KilnOnnxImport *import = scope->import;
    KilnType type = kiln_type_unranked(KILN_DTYPE_f32);
    KilnOnnxTypeKind kind =
        kiln_onnx_type_load(info->type, import->dim_names, import->module, &type);
    bool known = otherwise && otherwise->dtype < KILN_N_DTYPES;
    bool shapeless = kind == KILN_ONNX_TYPE_TENSOR && (type.rank < 0 || type.contents);
    if (known && (kind == KILN_ONNX_TYPE_NONE || (shapeless && type.dtype == otherwise->dtype)))
        type = *otherwise;
    else if (kind == KILN_ONNX_TYPE_NONE && !scope->outer)
        return kiln_throw(error, KILN_ERROR_FORMAT, "graph '%s': input '%s' has no type",
                          scope->graph->name, info->name);
    if (g_hash_table_contains(scope->values, info->name))
        return kiln_throw(error, KILN_ERROR_INVALID, "graph '%s': two inputs are called '%s'",
                          scope->graph->name, info->name);
    forget_inner_names(scope, &type);
    KilnArgument *argument = kiln_function_add_argument(
        scope->function, kiln_onnx_shown(scope, info->name), &type, error);
    if (!argument)
        return FALSE;
    g_hash_table_insert(scope->values, info->name, &argument->value);
    if (kind == KILN_ONNX_TYPE_OTHER)
        kiln_onnx_set_doubt(import, &argument->value, KILN_ONNX_OTHER);
    else if (kind == KILN_ONNX_TYPE_NONE && !known)
        kiln_onnx_set_doubt(import, &argument->value, KILN_ONNX_GUESSED);
    return TRUE;
}

/* Up to IR version 3 every initializer is listed among the inputs as well, and later versions may
 * list some as defaults that a caller could override: both are constants. */
static gboolean
import_arguments(KilnOnnxScope *scope, const KilnType *types, uint32_t n, GError **error)
{
    const KilnOnnxGraph *graph = scope->graph;
    g_autoptr(GHashTable) constants = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < graph->initializers->len; i++) {
        char *name = g_array_index(graph->initializers, KilnOnnxTensor, i).proto->name;
        if (name)
            g_hash_table_add(constants, name);
    }
    for (guint i = 0; i < graph->sparse->len; i++) {
        const char *name = g_array_index(graph->sparse, KilnOnnxSparse, i).name;
        if (name)
            g_hash_table_add(constants, (char *)name);
    }
    for (guint i = 0; i < graph->inputs->len; i++) {
        const Onnx__ValueInfoProto *info = g_ptr_array_index(graph->inputs, i);
        if (!g_hash_table_contains(constants, info->name) &&
            !import_argument(scope, info, i < n ? &types[i] : NULL, error))
            return FALSE;
    }
    const GPtrArray *arguments = scope->function->arguments;
    for (guint i = 0; !scope->outer && i < arguments->len; i++) {
        KilnValue *value = &((KilnArgument *)g_ptr_array_index(arguments, i))->value;
        kiln_onnx_name_dims(value->name, scope->import->dim_names, scope->import->module,
                            &value->type);
    }
    return TRUE;
}

/* A name for an output that the model lists a second time, which it does where it returns one value
 * twice: outputs of a model are bound by name. @last: the last number tried, by name. */
static const char *
repeated_output_name(KilnOnnxImport *import, GHashTable *taken, GHashTable *last, const char *base)
{
    for (guint i = GPOINTER_TO_UINT(g_hash_table_lookup(last, base)) + 1;; i++) {
        g_autofree char *name = g_strdup_printf("%s_%u", base, i);
        if (g_hash_table_contains(taken, name))
            continue;
        g_hash_table_insert(last, (char *)base, GUINT_TO_POINTER(i));
        return kiln_arena_strdup(import->module->arena, name);
    }
}

static gboolean
find_results(KilnOnnxScope *scope, KilnValue **values, const char **names, GError **error)
{
    const GPtrArray *outputs = scope->graph->outputs;
    g_autoptr(GHashTable) taken = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) last = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < outputs->len; i++) {
        const Onnx__ValueInfoProto *info = g_ptr_array_index(outputs, i);
        names[i] = g_hash_table_add(taken, info->name) ? info->name : NULL;
        values[i] = kiln_onnx_lookup(scope, info->name);
        if (!values[i])
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "graph '%s': nothing computes the output '%s'", scope->graph->name,
                              info->name);
    }
    for (guint i = 0; i < outputs->len; i++) {
        const Onnx__ValueInfoProto *info = g_ptr_array_index(outputs, i);
        if (names[i])
            continue;
        names[i] = repeated_output_name(scope->import, taken, last, info->name);
        g_hash_table_add(taken, (char *)names[i]);
    }
    return TRUE;
}

static gboolean
import_results(KilnOnnxScope *scope, GError **error)
{
    guint n = scope->graph->outputs->len;
    g_autofree KilnValue **values = g_new0(KilnValue *, n + 1);
    g_autofree const char **names = g_new0(const char *, n + 1);
    return find_results(scope, values, names, error) &&
           kiln_function_set_results(scope->function, values, names, n, error);
}

static gboolean
import_nodes(KilnOnnxScope *scope, GError **error)
{
    const GArray *nodes = scope->graph->nodes;
    const KilnModule *module = scope->import->module;
    if (!kiln_reserve_check(nodes->len, error) ||
        !kiln_budget_check_nodes((size_t)module->n_nodes + nodes->len, scope->graph->name, error))
        return FALSE;
    for (guint i = 0; i < nodes->len; i++) {
        const KilnOnnxNode *node = &g_array_index(nodes, KilnOnnxNode, i);
        if (!kiln_onnx_import_node(scope, node, error) || !kiln_checkpoint(error) ||
            !kiln_budget_check_nodes(module->n_nodes, node->proto->op_type, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_onnx_import_graph(KilnOnnxImport *import, KilnOnnxScope *outer, const KilnOnnxGraph *graph,
                       KilnFunction *function, const KilnType *argument_types, uint32_t n,
                       GError **error)
{
    KilnOnnxScope scope = { .outer = outer, .import = import, .function = function };
    scope_init(&scope, graph);
    gboolean good = check_depth(&scope, error) &&
                    import_arguments(&scope, argument_types, n, error) &&
                    import_initializers(&scope, error) && import_nodes(&scope, error) &&
                    import_results(&scope, error);
    scope_clear(&scope);
    return good;
}

/* The inputs of a graph that is imported in place mean @values. NULL: it has none. */
static void
define_arguments(KilnOnnxScope *scope, KilnValue *const *values)
{
    for (guint i = 0; values && i < scope->graph->inputs->len; i++) {
        Onnx__ValueInfoProto *info = g_ptr_array_index(scope->graph->inputs, i);
        g_hash_table_insert(scope->values, info->name, values[i]);
    }
}

gboolean
kiln_onnx_import_into(KilnOnnxImport *import, KilnOnnxScope *outer, const KilnOnnxGraph *graph,
                      KilnFunction *function, KilnValue *const *arguments, KilnValue **out,
                      GError **error)
{
    KilnOnnxScope scope = { .outer = outer, .import = import, .function = function };
    g_autofree const char **names = g_new0(const char *, graph->outputs->len + 1);
    scope_init(&scope, graph);
    define_arguments(&scope, arguments);
    gboolean good = check_depth(&scope, error) && import_initializers(&scope, error) &&
                    import_nodes(&scope, error) && find_results(&scope, out, names, error);
    scope_clear(&scope);
    return good;
}

gboolean
kiln_onnx_import_contents(KilnOnnxImport *import, KilnOnnxScope *outer, const KilnOnnxGraph *graph,
                          KilnValue *const *arguments, KilnValue **out, GError **error)
{
    return kiln_onnx_import_into(import, outer, graph, outer->function, arguments, out, error);
}

gboolean
kiln_onnx_import_body(KilnOnnxScope *outer, const KilnOnnxFrame *frame, KilnValue *const *operands,
                      KilnValue **out, GError **error)
{
    const KilnOnnxGraph *graph = frame->function->graph;
    KilnOnnxScope scope = { .outer = outer,
                            .frame = frame,
                            .closed = true,
                            .import = outer->import,
                            .function = outer->function };
    g_autofree const char **names = g_new0(const char *, graph->outputs->len + 1);
    scope_init(&scope, graph);
    define_arguments(&scope, operands);
    gboolean good = check_depth(&scope, error) && import_nodes(&scope, error) &&
                    find_results(&scope, out, names, error);
    scope_clear(&scope);
    return good;
}

/* --- the model --- */

static void
rename_if_shadowing(KilnFunction *region, KilnValue *value)
{
    for (KilnNode *owner = region->owner; owner; owner = owner->function->owner) {
        if (!kiln_function_find_value(owner->function, value->name))
            continue;
        kiln_value_rename(region, value, kiln_function_unique_name(region, value->name));
        value->made_up = true;
        return;
    }
}

/* Names in subgraphs were chosen without those around them (which may come later in the model):
 * what clashes is renamed, the inner one. */
static void
rename_shadows(KilnFunction *function)
{
    for (guint i = 0; function->owner && i < function->arguments->len; i++)
        rename_if_shadowing(function, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        for (uint32_t i = 0; function->owner && i < node->n_results; i++)
            rename_if_shadowing(function, &node->results[i]);
        kiln_foreach_region (region, node)
            rename_shadows(region);
    }
}

static void
import_metadata(KilnModule *module, const KilnOnnxModel *model)
{
    g_autofree KilnOpset *opsets = g_new0(KilnOpset, model->opsets->len + 1);
    for (guint i = 0; i < model->opsets->len; i++) {
        const Onnx__OperatorSetIdProto *opset = g_ptr_array_index(model->opsets, i);
        opsets[i] = (KilnOpset){ opset->domain ? opset->domain : "", opset->version };
    }
    KilnMetadata metadata = model->metadata;
    metadata.opsets = opsets;
    metadata.n_opsets = model->opsets->len;
    metadata.properties = (const KilnProperty *)model->properties->data;
    metadata.n_properties = model->properties->len;
    kiln_metadata_copy(&module->metadata, &metadata, module->arena);
}

/* Notes what of the model has no effect, or an effect that the model did not ask for. */
static void
note_versions(const KilnOnnxImport *import)
{
    const KilnOnnxModel *model = import->model;
    int64_t ir = model->metadata.ir_version, opset = kiln_onnx_model_opset(model, "");
    if (ir > KILN_ONNX_LATEST_IR)
        kiln_module_add_note(import->module,
                             "IR version %" G_GINT64_FORMAT " is newer than %d, the newest that is "
                             "known: fields that it added are left out",
                             ir, KILN_ONNX_LATEST_IR);
    if (opset > KILN_ONNX_LATEST && import->newer_opsets)
        kiln_module_add_note(import->module,
                             "opset %" G_GINT64_FORMAT
                             " is newer than %d, the newest that is known: "
                             "operators are read as those of opset %d",
                             opset, KILN_ONNX_LATEST, KILN_ONNX_LATEST);
    if (model->n_devices)
        kiln_module_add_note(import->module,
                             "annotations of devices at %zu %s are left out: Kiln computes on one",
                             model->n_devices, model->n_devices == 1 ? "place" : "places");
}

static gboolean
import_model(KilnOnnxImport *import, GError **error)
{
    const KilnOnnxModel *model = import->model;
    const char *name = *model->graph->name ? model->graph->name : "main";
    import_metadata(import->module, model);
    import->module->opset = (int)CLAMP(kiln_onnx_model_opset(model, ""), 0, G_MAXINT);
    note_versions(import);
    kiln_onnx_sort(model->graph, import->module);
    for (guint i = 0; i < model->functions->len; i++)
        kiln_onnx_sort(((KilnOnnxFunction *)g_ptr_array_index(model->functions, i))->graph,
                       import->module);
    KilnFunction *function = kiln_function_new(import->module, name);
    if (!kiln_onnx_import_graph(import, NULL, model->graph, function, NULL, 0, error))
        return FALSE;
    rename_shadows(function);
    return TRUE;
}

KilnModule *
kiln_onnx_import_with(GBytes *bytes, const char *path, const KilnOnnxOptions *options,
                      GError **error)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    module->path = g_strdup(path);
    KilnOnnxImport import = { .module = module, .newer_opsets = options->newer_opsets };
    import.model = kiln_onnx_model_new(bytes, error);
    import.dim_names = g_hash_table_new(g_str_hash, g_str_equal);
    import.doubts = g_hash_table_new(NULL, NULL);
    kiln_onnx_files_init(&import.files, bytes, path);
    import.files.alone = options->alone;
    bool good = import.model && import_model(&import, error);
    if (!good && path)
        kiln_prefix_error(error, "%s: ", path);
    kiln_onnx_files_clear(&import.files);
    g_hash_table_unref(import.dim_names);
    g_hash_table_unref(import.doubts);
    kiln_onnx_model_free(import.model);
    return good ? g_steal_pointer(&module) : NULL;
}

KilnModule *
kiln_onnx_import(GBytes *bytes, const char *path, GError **error)
{
    return kiln_onnx_import_with(bytes, path, &(KilnOnnxOptions){ 0 }, error);
}

KilnModule *
kiln_onnx_import_file(const char *path, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_map_file(path, error);
    return bytes ? kiln_onnx_import(bytes, path, error) : NULL;
}

KilnTensor *
kiln_onnx_tensor_parse(GBytes *bytes, const char *path, char **out_name, GError **error)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    KilnOnnxTensor scanned;
    KilnOnnxFiles files;
    kiln_onnx_files_init(&files, bytes, path);
    size_t size;
    const uint8_t *data = g_bytes_get_data(bytes, &size);
    const uint8_t *base = data ? data : (const uint8_t *)""; /* of an empty file */
    KilnTensor *tensor = NULL;
    if (kiln_onnx_tensor_scan(base, (KilnSpan){ 0, size }, arena, &scanned, error))
        tensor = kiln_onnx_tensor_load(&scanned, &files, error);
    if (tensor && out_name)
        *out_name = g_strdup(scanned.proto->name ? scanned.proto->name : "");
    if (!tensor && path)
        kiln_prefix_error(error, "%s: ", path);
    kiln_onnx_files_clear(&files);
    return tensor;
}
