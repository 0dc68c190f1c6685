/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over ModelProto, GraphProto, NodeProto and AttributeProto. Whatever nests without bound
 * is walked here, with a depth; whatever may be big is left where it lies. */
#include "graph/onnx/model.h"

#include "graph/base/budget.h"
#include "graph/error.h"
#include "graph/onnx/fields.h"

#include <string.h>

/* What a walk needs everywhere. */
typedef struct {
    KilnOnnxModel *model;
    int depth;      /* of graphs within graphs */
    size_t n_nodes; /* of all graphs so far */
} Walk;

static KilnOnnxGraph *walk_graph(Walk *walk, KilnSpan span, GError **error);

static GArray *
holes_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(KilnSpan));
}

/* Cuts a whole field, tag included. */
static void
cut(GArray *holes, const KilnWireField *field)
{
    size_t end = field->payload.offset + field->payload.length;
    KilnSpan hole = { field->start, end - field->start };
    g_array_append_val(holes, hole);
}

/* A field that is a message or text must come as bytes. */
static bool
is_bytes(const KilnWireField *field, GError **error)
{
    return field->type == KILN_WIRE_BYTES ||
           kiln_throw(error, KILN_ERROR_FORMAT,
                      "byte %zu: field %u: expected wire type 2, found %u", field->start,
                      field->number, (unsigned)field->type);
}

/* Ends a loop over kiln_wire_next: false and the failure, if there was one. */
static gboolean
finished(GError *failure, GError **error)
{
    if (!failure)
        return TRUE;
    g_propagate_error(error, failure);
    return FALSE;
}

/* --- tensors --- */

gboolean
kiln_onnx_tensor_scan(const uint8_t *base, KilnSpan span, KilnArena *arena, KilnOnnxTensor *out,
                      GError **error)
{
    g_autoptr(GArray) holes = holes_new();
    KilnWireField field, raw = { 0 }, run = { 0 };
    GError *failure = NULL;
    unsigned runs = 0;
    KilnWire wire = kiln_wire(base, span);
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (field.number == TENSOR_RAW_DATA) {
            if (!is_bytes(&field, error))
                return FALSE;
            cut(holes, &field);
            raw = field;
        } else if (field.number == TENSOR_FLOAT_DATA || field.number == TENSOR_DOUBLE_DATA) {
            run = field;
            runs++;
        }
    }
    if (!finished(failure, error))
        return FALSE;
    /* One packed run of floats has the bytes that raw_data would have; several, or single numbers,
     * are legal too and left to protobuf-c. */
    if (!raw.number && runs == 1 && run.type == KILN_WIRE_BYTES) {
        size_t unit = run.number == TENSOR_FLOAT_DATA ? 4 : 8;
        if (run.payload.length % unit != 0)
            return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: packed numbers are cut short",
                              run.start);
        cut(holes, &run);
        raw = run;
    }
    *out = (KilnOnnxTensor){ .offset = span.offset };
    out->payload = raw.payload;
    out->payload_field = (int)raw.number;
    out->proto = kiln_wire_unpack(base, span, holes, &onnx__tensor_proto__descriptor, arena, error);
    return out->proto != NULL;
}

static gboolean
walk_tensor(Walk *walk, const KilnWireField *field, KilnOnnxTensor *out, GError **error)
{
    return is_bytes(field, error) &&
           kiln_onnx_tensor_scan(walk->model->base, field->payload, walk->model->arena, out, error);
}

static gboolean
walk_sparse(Walk *walk, KilnSpan span, KilnOnnxSparse *out, GError **error)
{
    KilnOnnxModel *model = walk->model;
    g_autoptr(GArray) holes = holes_new();
    KilnWire wire = kiln_wire(model->base, span);
    KilnWireField field;
    GError *failure = NULL;
    *out = (KilnOnnxSparse){ 0 };
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (field.number != SPARSE_VALUES && field.number != SPARSE_INDICES)
            continue;
        bool values = field.number == SPARSE_VALUES;
        if (!walk_tensor(walk, &field, values ? &out->values : &out->indices, error))
            return FALSE;
        cut(holes, &field);
    }
    if (!finished(failure, error))
        return FALSE;
    const Onnx__SparseTensorProto *proto = kiln_wire_unpack(
        model->base, span, holes, &onnx__sparse_tensor_proto__descriptor, model->arena, error);
    if (!proto)
        return FALSE;
    if (!out->values.proto || !out->indices.proto)
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "byte %zu: a sparse tensor lacks its values or indices", span.offset);
    out->name = out->values.proto->name;
    out->dims = proto->dims;
    out->n_dims = proto->n_dims;
    return TRUE;
}

/* --- nodes and attributes --- */

static int
deduced_kind(const KilnOnnxAttr *attr)
{
    const Onnx__AttributeProto *proto = attr->proto;
    if (proto->has_type && proto->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return (int)proto->type;
    return attr->tensor       ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR
           : attr->graph      ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH
           : attr->sparse     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR
           : proto->has_f     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
           : proto->has_i     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
           : proto->has_s     ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
           : proto->n_floats  ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
           : proto->n_strings ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
                              : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

/* Takes a tensor or graph out of an attribute; leaves lists of them, which no operator has, unread.
 * False in @out_cut where the field is none of these. */
static gboolean
walk_attr_field(Walk *walk, const KilnWireField *field, KilnOnnxAttr *out, bool *out_cut,
                GError **error)
{
    KilnArena *arena = walk->model->arena;
    *out_cut = true;
    switch (field->number) {
    case ATTR_T:
        out->tensor = kiln_arena_new0(arena, KilnOnnxTensor, 1);
        return walk_tensor(walk, field, out->tensor, error);
    case ATTR_SPARSE_TENSOR:
        out->sparse = kiln_arena_new0(arena, KilnOnnxSparse, 1);
        return is_bytes(field, error) && walk_sparse(walk, field->payload, out->sparse, error);
    case ATTR_G:
        if (!is_bytes(field, error))
            return FALSE;
        out->graph = walk_graph(walk, field->payload, error);
        return out->graph != NULL;
    case ATTR_TENSORS:
    case ATTR_GRAPHS:
    case ATTR_SPARSE_TENSORS:
        return TRUE;
    default:
        *out_cut = false;
        return TRUE;
    }
}

static gboolean
walk_attr(Walk *walk, KilnSpan span, KilnOnnxAttr *out, GError **error)
{
    KilnOnnxModel *model = walk->model;
    g_autoptr(GArray) holes = holes_new();
    KilnWire wire = kiln_wire(model->base, span);
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        bool is_cut;
        if (!walk_attr_field(walk, &field, out, &is_cut, error))
            return FALSE;
        if (is_cut)
            cut(holes, &field);
    }
    if (!finished(failure, error))
        return FALSE;
    out->proto = kiln_wire_unpack(model->base, span, holes, &onnx__attribute_proto__descriptor,
                                  model->arena, error);
    if (!out->proto)
        return FALSE;
    if (!out->proto->name || !*out->proto->name)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: an attribute has no name",
                          span.offset);
    out->kind = deduced_kind(out);
    return TRUE;
}

static gboolean
walk_text(Walk *walk, KilnSpan span, const char **out, GError **error)
{
    const char *text = (const char *)walk->model->base + span.offset;
    if (!g_utf8_validate(text, (gssize)span.length, NULL))
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: the name is not UTF-8 text",
                          span.offset);
    char *copy = kiln_arena_alloc(walk->model->arena, span.length + 1);
    memcpy(copy, text, span.length);
    *out = copy;
    return TRUE;
}

static gboolean
walk_node(Walk *walk, KilnSpan span, KilnOnnxNode *out, GError **error)
{
    KilnOnnxModel *model = walk->model;
    g_autoptr(GArray) holes = holes_new();
    g_autoptr(GArray) attrs = g_array_new(FALSE, FALSE, sizeof(KilnOnnxAttr));
    KilnWire wire = kiln_wire(model->base, span);
    KilnWireField field;
    GError *failure = NULL;
    out->overload = "";
    while (kiln_wire_next(&wire, &field, &failure)) {
        KilnOnnxAttr attr = { 0 };
        model->n_devices += field.number == NODE_DEVICE_CONFIGURATIONS;
        if (field.number == NODE_OVERLOAD &&
            !(is_bytes(&field, error) && walk_text(walk, field.payload, &out->overload, error)))
            return FALSE;
        if (field.number != NODE_ATTRIBUTE)
            continue;
        if (!is_bytes(&field, error) || !walk_attr(walk, field.payload, &attr, error))
            return FALSE;
        g_array_append_val(attrs, attr);
        cut(holes, &field);
    }
    if (!finished(failure, error))
        return FALSE;
    out->offset = span.offset;
    out->n_attrs = attrs->len;
    out->attrs = kiln_arena_copy(model->arena, attrs->data, attrs->len * sizeof(KilnOnnxAttr));
    out->proto = kiln_wire_unpack(model->base, span, holes, &onnx__node_proto__descriptor,
                                  model->arena, error);
    if (!out->proto)
        return FALSE;
    if (!out->proto->op_type || !*out->proto->op_type)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a node has no op_type", span.offset);
    return TRUE;
}

/* --- graphs --- */

static gboolean
walk_value(Walk *walk, KilnSpan span, GPtrArray *list, GError **error)
{
    KilnOnnxModel *model = walk->model;
    Onnx__ValueInfoProto *info = kiln_wire_unpack(
        model->base, span, NULL, &onnx__value_info_proto__descriptor, model->arena, error);
    if (!info)
        return FALSE;
    if (!info->name || !*info->name)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a value has no name", span.offset);
    g_ptr_array_add(list, info);
    return TRUE;
}

static gboolean
walk_counted_node(Walk *walk, KilnSpan span, GArray *nodes, GError **error)
{
    KilnOnnxNode node = { 0 };
    if (!walk_node(walk, span, &node, error) ||
        !kiln_budget_check_nodes(++walk->n_nodes, node.proto->op_type, error))
        return FALSE;
    g_array_append_val(nodes, node);
    return TRUE;
}

static gboolean
walk_graph_field(Walk *walk, const KilnWireField *field, KilnOnnxGraph *graph, GError **error)
{
    KilnSpan span = field->payload;
    switch (field->number) {
    case GRAPH_NODE:
    case GRAPH_NAME:
    case GRAPH_INITIALIZER:
    case GRAPH_SPARSE_INITIALIZER:
    case GRAPH_INPUT:
    case GRAPH_OUTPUT:
    case GRAPH_VALUE_INFO:
        if (!is_bytes(field, error))
            return FALSE;
        break;
    default:
        return TRUE;
    }
    switch (field->number) {
    case GRAPH_NODE:
        return walk_counted_node(walk, span, graph->nodes, error);
    case GRAPH_INITIALIZER: {
        KilnOnnxTensor tensor;
        if (!walk_tensor(walk, field, &tensor, error))
            return FALSE;
        g_array_append_val(graph->initializers, tensor);
        return TRUE;
    }
    case GRAPH_SPARSE_INITIALIZER: {
        KilnOnnxSparse sparse;
        if (!walk_sparse(walk, span, &sparse, error))
            return FALSE;
        g_array_append_val(graph->sparse, sparse);
        return TRUE;
    }
    case GRAPH_INPUT:
        return walk_value(walk, span, graph->inputs, error);
    case GRAPH_OUTPUT:
        return walk_value(walk, span, graph->outputs, error);
    case GRAPH_VALUE_INFO:
        return walk_value(walk, span, graph->values, error);
    default:
        return walk_text(walk, span, &graph->name, error);
    }
}

static void
unref_array(gpointer array)
{
    g_array_unref(array);
}

static KilnOnnxGraph *
graph_new(KilnOnnxModel *model, size_t offset)
{
    KilnOnnxGraph *graph = kiln_arena_new0(model->arena, KilnOnnxGraph, 1);
    graph->name = "";
    graph->offset = offset;
    GArray *arrays[] = {
        graph->nodes = g_array_new(FALSE, FALSE, sizeof(KilnOnnxNode)),
        graph->initializers = g_array_new(FALSE, FALSE, sizeof(KilnOnnxTensor)),
        graph->sparse = g_array_new(FALSE, FALSE, sizeof(KilnOnnxSparse)),
    };
    GPtrArray *pointers[] = { graph->inputs = g_ptr_array_new(), graph->outputs = g_ptr_array_new(),
                              graph->values = g_ptr_array_new() };
    for (size_t i = 0; i < 3; i++) {
        g_ptr_array_add(model->arrays, arrays[i]);
        g_ptr_array_add(model->pointers, pointers[i]);
    }
    return graph;
}

static KilnOnnxGraph *
walk_graph(Walk *walk, KilnSpan span, GError **error)
{
    if (++walk->depth > KILN_WIRE_MAX_DEPTH)
        return kiln_throw_null(error, KILN_ERROR_FORMAT, "byte %zu: graphs are nested too deeply",
                               span.offset);
    KilnOnnxGraph *graph = graph_new(walk->model, span.offset);
    KilnWire wire = kiln_wire(walk->model->base, span);
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (!walk_graph_field(walk, &field, graph, error))
            return NULL;
    }
    walk->depth--;
    return finished(failure, error) ? graph : NULL;
}

/* --- functions --- */

/* The default domain has two names. */
static const char *
plain_domain(const char *domain)
{
    return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static guint
hash_function(gconstpointer id)
{
    const KilnOnnxFunction *function = id;
    return g_str_hash(function->name) * 31 + g_str_hash(function->domain);
}

static gboolean
same_function(gconstpointer a, gconstpointer b)
{
    const KilnOnnxFunction *left = a, *right = b;
    return strcmp(left->name, right->name) == 0 && strcmp(left->domain, right->domain) == 0 &&
           strcmp(left->overload, right->overload) == 0;
}

static gboolean
walk_opset(Walk *walk, KilnSpan span, GPtrArray *opsets, GError **error)
{
    Onnx__OperatorSetIdProto *opset =
        kiln_wire_unpack(walk->model->base, span, NULL, &onnx__operator_set_id_proto__descriptor,
                         walk->model->arena, error);
    if (opset)
        g_ptr_array_add(opsets, opset);
    return opset != NULL;
}

/* An input or output of a function is a name alone. */
static gboolean
walk_parameter(Walk *walk, KilnSpan span, GPtrArray *list, GError **error)
{
    Onnx__ValueInfoProto *info = kiln_arena_new0(walk->model->arena, Onnx__ValueInfoProto, 1);
    const char *name = "";
    onnx__value_info_proto__init(info);
    if (!walk_text(walk, span, &name, error))
        return FALSE;
    if (!*name)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a parameter has no name",
                          span.offset);
    info->name = (char *)name;
    g_ptr_array_add(list, info);
    return TRUE;
}

static gboolean
walk_function_field(Walk *walk, const KilnWireField *field, KilnOnnxFunction *function,
                    GError **error)
{
    KilnSpan span = field->payload;
    KilnOnnxAttr attr = { 0 };
    const char *name = "";
    bool walked = field->number == FUNCTION_NAME ||
                  (field->number >= FUNCTION_INPUT && field->number <= FUNCTION_OVERLOAD);
    if (walked && !is_bytes(field, error))
        return FALSE;
    switch (field->number) {
    case FUNCTION_NAME:
        return walk_text(walk, span, &function->name, error);
    case FUNCTION_DOMAIN:
        return walk_text(walk, span, &function->domain, error);
    case FUNCTION_OVERLOAD:
        return walk_text(walk, span, &function->overload, error);
    case FUNCTION_INPUT:
        return walk_parameter(walk, span, function->graph->inputs, error);
    case FUNCTION_OUTPUT:
        return walk_parameter(walk, span, function->graph->outputs, error);
    case FUNCTION_NODE:
        return walk_counted_node(walk, span, function->graph->nodes, error);
    case FUNCTION_OPSET_IMPORT:
        return walk_opset(walk, span, function->opsets, error);
    case FUNCTION_ATTRIBUTE:
        if (!walk_text(walk, span, &name, error))
            return FALSE;
        g_ptr_array_add(function->attrs, (char *)name);
        return TRUE;
    case FUNCTION_ATTRIBUTE_PROTO:
        if (!walk_attr(walk, span, &attr, error))
            return FALSE;
        g_array_append_val(function->defaults, attr);
        return TRUE;
    default:
        return TRUE;
    }
}

static KilnOnnxFunction *
function_new(KilnOnnxModel *model, size_t offset)
{
    KilnOnnxFunction *function = kiln_arena_new0(model->arena, KilnOnnxFunction, 1);
    function->domain = function->name = function->overload = "";
    function->graph = graph_new(model, offset);
    function->attrs = g_ptr_array_new();
    function->opsets = g_ptr_array_new();
    function->defaults = g_array_new(FALSE, FALSE, sizeof(KilnOnnxAttr));
    g_ptr_array_add(model->pointers, function->attrs);
    g_ptr_array_add(model->pointers, function->opsets);
    g_ptr_array_add(model->arrays, function->defaults);
    return function;
}

static gboolean
walk_function(Walk *walk, KilnSpan span, GError **error)
{
    KilnOnnxModel *model = walk->model;
    KilnOnnxFunction *function = function_new(model, span.offset);
    KilnWire wire = kiln_wire(model->base, span);
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (!walk_function_field(walk, &field, function, error))
            return FALSE;
    }
    if (!finished(failure, error))
        return FALSE;
    function->domain = plain_domain(function->domain);
    function->graph->name = function->name;
    if (!*function->name)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a function has no name",
                          span.offset);
    if (g_hash_table_contains(model->by_id, function))
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a second function '%s%s%s'",
                          span.offset, function->domain, *function->domain ? ":" : "",
                          function->name);
    g_hash_table_add(model->by_id, function);
    g_ptr_array_add(model->functions, function);
    return TRUE;
}

const KilnOnnxFunction *
kiln_onnx_model_function(const KilnOnnxModel *model, const KilnOnnxNode *node)
{
    const KilnOnnxFunction id = { .domain = plain_domain(node->proto->domain),
                                  .name = node->proto->op_type,
                                  .overload = node->overload };
    return model->functions->len ? g_hash_table_lookup(model->by_id, &id) : NULL;
}

/* --- the model --- */

/* Notes for humans: in any encoding, of any length. What is no UTF-8 becomes U+FFFD. */
static gboolean
walk_note(Walk *walk, const KilnWireField *field, const char **out, GError **error)
{
    if (!is_bytes(field, error))
        return FALSE;
    const char *text = (const char *)walk->model->base + field->payload.offset;
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)field->payload.length);
    *out = kiln_arena_strdup(walk->model->arena, valid);
    return TRUE;
}

static gboolean
walk_property(Walk *walk, const KilnWireField *message, GError **error)
{
    if (!is_bytes(message, error))
        return FALSE;
    KilnProperty property = { "", "" };
    KilnWire wire = kiln_wire(walk->model->base, message->payload);
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (field.number == PROPERTY_KEY && !walk_note(walk, &field, &property.key, error))
            return FALSE;
        if (field.number == PROPERTY_VALUE && !walk_note(walk, &field, &property.value, error))
            return FALSE;
    }
    g_array_append_val(walk->model->properties, property);
    return finished(failure, error);
}

static gboolean
walk_model_field(Walk *walk, const KilnWireField *field, GError **error)
{
    KilnOnnxModel *model = walk->model;
    switch (field->number) {
#define X(name, number)                                                                            \
    case number:                                                                                   \
        return walk_note(walk, field, &model->metadata.name, error);
        KILN_METADATA_TEXTS(X)
#undef X
#define X(name, number)                                                                            \
    case number:                                                                                   \
        model->metadata.name = (int64_t)field->value;                                              \
        return TRUE;
        KILN_METADATA_NUMBERS(X)
#undef X
    case MODEL_CONFIGURATION:
        model->n_devices++;
        return TRUE;
    case MODEL_METADATA_PROPS:
        return walk_property(walk, field, error);
    case MODEL_OPSET_IMPORT:
        return is_bytes(field, error) && walk_opset(walk, field->payload, model->opsets, error);
    case MODEL_FUNCTIONS:
        return is_bytes(field, error) && walk_function(walk, field->payload, error);
    case MODEL_GRAPH:
        if (model->graph)
            return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a second graph", field->start);
        if (!is_bytes(field, error))
            return FALSE;
        model->graph = walk_graph(walk, field->payload, error);
        return model->graph != NULL;
    default:
        return TRUE;
    }
}

/* Walks the fields of the outermost message. */
static gboolean
walk_model(KilnOnnxModel *model, size_t size, GError **error)
{
    Walk walk = { .model = model };
    KilnWire wire = { model->base, 0, size };
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (!walk_model_field(&walk, &field, error))
            return FALSE;
    }
    if (!finished(failure, error))
        return FALSE;
    if (!model->graph)
        return kiln_throw(error, KILN_ERROR_FORMAT, "the file has no graph");
    return TRUE;
}

/* Says what the file is instead, where neither a version nor a graph was found before it failed. */
static void
explain(const KilnOnnxModel *model, size_t size, GError **error)
{
    static const char lfs[] = "version https://git-lfs";
    if (size >= strlen(lfs) && memcmp(model->base, lfs, strlen(lfs)) == 0) {
        g_clear_error(error);
        kiln_throw(error, KILN_ERROR_FORMAT,
                   "not an ONNX model but a pointer of Git LFS: `git lfs pull` fetches the model");
    } else if (model->metadata.ir_version == 0 && !model->graph) {
        kiln_prefix_error(error, "not an ONNX model: ");
    }
}

KilnOnnxModel *
kiln_onnx_model_new(GBytes *bytes, GError **error)
{
    g_autoptr(KilnOnnxModel) model = g_new0(KilnOnnxModel, 1);
    model->arena = kiln_arena_new();
    model->arrays = g_ptr_array_new_with_free_func(unref_array);
    model->pointers = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    model->opsets = g_ptr_array_new();
    model->functions = g_ptr_array_new();
    model->by_id = g_hash_table_new(hash_function, same_function);
    model->properties = g_array_new(FALSE, FALSE, sizeof(KilnProperty));
    kiln_metadata_init(&model->metadata);
    model->bytes = g_bytes_ref(bytes);
    size_t size;
    const uint8_t *data = g_bytes_get_data(bytes, &size);
    model->base = data ? data : (const uint8_t *)""; /* of an empty file */
    if (!walk_model(model, size, error)) {
        explain(model, size, error);
        return NULL;
    }
    return g_steal_pointer(&model);
}

void
kiln_onnx_model_free(KilnOnnxModel *model)
{
    if (!model)
        return;
    g_ptr_array_unref(model->arrays);
    g_ptr_array_unref(model->pointers);
    g_ptr_array_unref(model->opsets);
    g_ptr_array_unref(model->functions);
    g_hash_table_unref(model->by_id);
    g_array_unref(model->properties);
    kiln_arena_free(model->arena);
    g_bytes_unref(model->bytes);
    g_free(model);
}

int64_t
kiln_onnx_opset(const GPtrArray *opsets, const char *domain)
{
    for (guint i = 0; i < opsets->len; i++) {
        const Onnx__OperatorSetIdProto *opset = g_ptr_array_index(opsets, i);
        if (strcmp(plain_domain(opset->domain), plain_domain(domain)) == 0)
            return opset->version;
    }
    return 0;
}

int64_t
kiln_onnx_model_opset(const KilnOnnxModel *model, const char *domain)
{
    return kiln_onnx_opset(model->opsets, domain);
}
