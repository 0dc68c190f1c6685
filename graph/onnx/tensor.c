/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto: every place where ONNX lets the elements lie, and types. */
#include "graph/onnx/tensor.h"

#include "graph/base/alloc.h"
#include "graph/onnx/fields.h"

#include <string.h>

/* --- the type --- */

char *
kiln_onnx_dtype_text(int64_t number)
{
    static const char *const names[] = {
        "undefined",      "float",    "uint8",        "int8",           "uint16",
        "int16",          "int32",    "int64",        "string",         "bool",
        "float16",        "double",   "uint32",       "uint64",         "complex64",
        "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
        "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
        "uint2",          "int2",     "float6e2m3",   "float6e3m2",
    };
    return number >= 0 && number < (int64_t)G_N_ELEMENTS(names)
               ? g_strdup(names[number])
               : g_strdup_printf("%" G_GINT64_FORMAT, number);
}

static gboolean
load_type(const KilnOnnxTensor *tensor, KilnType *out, GError **error)
{
    const Onnx__TensorProto *proto = tensor->proto;
    const char *name = proto->name ? proto->name : "";
    KilnDType dtype;
    if (!proto->has_data_type || proto->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__UNDEFINED)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: tensor '%s' has no element type",
                          tensor->offset, name);
    if (!kiln_dtype_from_onnx(proto->data_type, &dtype)) {
        g_autofree char *text = kiln_onnx_dtype_text(proto->data_type);
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "tensor '%s': element type %s", name,
                          text);
    }
    if (proto->n_dims > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "tensor '%s': rank %zu, at most %d", name,
                          proto->n_dims, KILN_MAX_RANK);
    for (size_t i = 0; i < proto->n_dims; i++) {
        if (proto->dims[i] < 0)
            return kiln_throw(error, KILN_ERROR_FORMAT,
                              "byte %zu: tensor '%s': dim %zu is %" G_GINT64_FORMAT, tensor->offset,
                              name, i, proto->dims[i]);
    }
    if (proto->segment)
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "byte %zu: tensor '%s': expected a whole tensor, found a segment",
                          tensor->offset, name);
    *out = kiln_type_make(dtype, (int)proto->n_dims, proto->dims);
    if (kiln_type_bytes(out) < 0)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: tensor '%s' is too big",
                          tensor->offset, name);
    return TRUE;
}

/* --- lists of numbers --- */

static gboolean
throw_count(const KilnOnnxTensor *tensor, const KilnType *type, size_t found, GError **error)
{
    g_autofree char *text = kiln_type_to_string(type);
    return kiln_throw(error, KILN_ERROR_FORMAT,
                      "byte %zu: tensor '%s': expected %" G_GINT64_FORMAT
                      " elements for %s, found %zu",
                      tensor->offset, tensor->proto->name ? tensor->proto->name : "",
                      kiln_type_elements(type), text, found);
}

/* Stores the low bytes of integers; what does not fit in @size bytes is malformed. */
static bool
narrow(void *out, size_t size, bool is_signed, const int32_t *values, size_t n)
{
    int64_t low = is_signed ? -((int64_t)1 << (8 * size - 1)) : 0;
    int64_t high = is_signed ? -(low + 1) : ((int64_t)1 << (8 * size)) - 1;
    for (size_t i = 0; i < n; i++) {
        if (size < 4 && (values[i] < low || values[i] > high))
            return false;
        uint32_t bits = GUINT32_TO_LE((uint32_t)values[i]);
        memcpy((uint8_t *)out + i * size, &bits, size);
    }
    return true;
}

/* The list that holds elements of @dtype, its length and the size of its items. */
static const void *
number_list(const Onnx__TensorProto *proto, KilnDType dtype, size_t *n, size_t *size)
{
    switch (dtype) {
    case KILN_DTYPE_f32:
        *n = proto->n_float_data, *size = sizeof(float);
        return proto->float_data;
    case KILN_DTYPE_f64:
        *n = proto->n_double_data, *size = sizeof(double);
        return proto->double_data;
    case KILN_DTYPE_i64:
        *n = proto->n_int64_data, *size = sizeof(int64_t);
        return proto->int64_data;
    case KILN_DTYPE_u32:
    case KILN_DTYPE_u64:
        *n = proto->n_uint64_data, *size = sizeof(uint64_t);
        return proto->uint64_data;
    default: /* integers of up to 32 bits, bool, and the bits of 16-bit floats */
        *n = proto->n_int32_data, *size = sizeof(int32_t);
        return proto->int32_data;
    }
}

static KilnTensor *
load_numbers(const KilnOnnxTensor *tensor, const KilnType *type, GError **error)
{
    KilnDType dtype = type->dtype;
    size_t n, item, size = kiln_dtype_size(dtype);
    const void *list = number_list(tensor->proto, dtype, &n, &item);
    /* An item has a byte of 2 or 4 elements, but one element of 6 bits. */
    bool packed = kiln_dtype_bits(dtype) < 6;
    if (n != (uint64_t)(packed ? kiln_tensor_stored_bytes(type) : kiln_type_elements(type))) {
        throw_count(tensor, type, n, error);
        return NULL;
    }
    void *memory;
    g_autoptr(GBytes) bytes = kiln_bytes_new(n, size, &memory, error);
    if (!bytes)
        return NULL;
    bool fits = true;
    if (item == size) {
        if (n)
            memcpy(memory, list, n * size);
    } else if (dtype == KILN_DTYPE_u32) {
        for (size_t i = 0; i < n && fits; i++) {
            uint64_t value = ((const uint64_t *)list)[i];
            fits = value <= UINT32_MAX;
            ((uint32_t *)memory)[i] = (uint32_t)value;
        }
    } else {
        fits = narrow(memory, size, kiln_dtype_is_signed(dtype) && !packed, list, n);
    }
    if (!fits)
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "byte %zu: tensor '%s' has elements out of range", tensor->offset,
                               tensor->proto->name ? tensor->proto->name : "");
    return packed ? kiln_tensor_new_stored(type, bytes, error)
                  : kiln_tensor_new_data(type, bytes, error);
}

KilnTensor *
kiln_onnx_texts_load(const KilnType *type, const ProtobufCBinaryData *data, size_t n,
                     GError **error)
{
    g_autofree KilnText *texts = g_new(KilnText, n + 1);
    for (size_t i = 0; i < n; i++)
        texts[i] = (KilnText){ (const char *)data[i].data, data[i].len };
    return kiln_tensor_new_texts(type, texts, n, error);
}

static KilnTensor *
load_strings(const KilnOnnxTensor *tensor, const KilnType *type, GError **error)
{
    const Onnx__TensorProto *proto = tensor->proto;
    if (proto->n_string_data != (uint64_t)kiln_type_elements(type)) {
        throw_count(tensor, type, proto->n_string_data, error);
        return NULL;
    }
    KilnTensor *result =
        kiln_onnx_texts_load(type, proto->string_data, proto->n_string_data, error);
    if (!result)
        kiln_prefix_error(error, "byte %zu: tensor '%s': ", tensor->offset,
                          proto->name ? proto->name : "");
    return result;
}

/* --- bytes in the model file or beside it --- */

static KilnTensor *
wrap_bytes(const KilnOnnxTensor *tensor, const KilnType *type, GBytes *bytes, GError **error)
{
    KilnTensor *result = kiln_tensor_new_stored(type, bytes, error);
    if (!result) {
        kiln_prefix_error(error, "byte %zu: tensor '%s': ", tensor->offset,
                          tensor->proto->name ? tensor->proto->name : "");
        if (error && *error)
            (*error)->code = KILN_ERROR_FORMAT;
    }
    return result;
}

static KilnTensor *
load_mapped(const KilnOnnxTensor *tensor, const KilnType *type, const KilnOnnxFiles *files,
            GError **error)
{
    const Onnx__TensorProto *proto = tensor->proto;
    bool also_listed = proto->n_float_data || proto->n_int32_data || proto->n_int64_data ||
                       proto->n_double_data || proto->n_uint64_data || proto->n_string_data;
    KilnDType holds = tensor->payload_field == TENSOR_RAW_DATA     ? type->dtype
                      : tensor->payload_field == TENSOR_FLOAT_DATA ? KILN_DTYPE_f32
                                                                   : KILN_DTYPE_f64;
    if (also_listed || holds != type->dtype || type->dtype == KILN_DTYPE_string)
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "byte %zu: tensor '%s' has elements in a field of another type",
                               tensor->offset, proto->name ? proto->name : "");
    g_autoptr(GBytes) bytes =
        g_bytes_new_from_bytes(files->bytes, tensor->payload.offset, tensor->payload.length);
    KilnTensor *result = wrap_bytes(tensor, type, bytes, error);
    if (result && files->path) {
        result->file = g_strdup(files->path);
        result->file_offset = (int64_t)tensor->payload.offset;
    }
    return result;
}

static bool
parse_count(const char *text, int64_t *out)
{
    guint64 value;
    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &value, NULL))
        return false;
    *out = (int64_t)value;
    return true;
}

static KilnTensor *
load_external(const KilnOnnxTensor *tensor, const KilnType *type, KilnOnnxFiles *files,
              GError **error)
{
    const Onnx__TensorProto *proto = tensor->proto;
    const char *location = NULL, *name = proto->name ? proto->name : "";
    int64_t offset = 0, length = kiln_tensor_stored_bytes(type);
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = proto->external_data[i];
        const char *key = entry->key ? entry->key : "", *value = entry->value ? entry->value : "";
        bool good = true;
        if (strcmp(key, "location") == 0)
            location = value;
        else if (strcmp(key, "offset") == 0)
            good = parse_count(value, &offset);
        else if (strcmp(key, "length") == 0)
            good = parse_count(value, &length);
        if (!good)
            return kiln_throw_null(error, KILN_ERROR_FORMAT,
                                   "byte %zu: tensor '%s': %s '%s' of external data is no number",
                                   tensor->offset, name, key, value);
    }
    if (!location || type->dtype == KILN_DTYPE_string)
        return kiln_throw_null(error, KILN_ERROR_FORMAT, "byte %zu: tensor '%s': external data %s",
                               tensor->offset, name,
                               location ? "of strings" : "without a location");
    const char *path;
    g_autoptr(GBytes) bytes =
        kiln_onnx_files_slice(files, location, (uint64_t)offset, length, &path, error);
    if (!bytes) {
        kiln_prefix_error(error, "tensor '%s': ", name);
        return NULL;
    }
    KilnTensor *result = wrap_bytes(tensor, type, bytes, error);
    if (result) {
        result->file = g_strdup(path);
        result->file_offset = offset;
        result->mapped = true;
    }
    return result;
}

KilnTensor *
kiln_onnx_tensor_load(const KilnOnnxTensor *tensor, KilnOnnxFiles *files, GError **error)
{
    KilnType type;
    if (!load_type(tensor, &type, error))
        return NULL;
    if (tensor->proto->has_data_location &&
        tensor->proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return load_external(tensor, &type, files, error);
    if (tensor->payload_field)
        return load_mapped(tensor, &type, files, error);
    return type.dtype == KILN_DTYPE_string ? load_strings(tensor, &type, error)
                                           : load_numbers(tensor, &type, error);
}

/* --- types --- */

char *
kiln_onnx_type_trouble(const Onnx__TypeProto *proto)
{
    switch (proto ? proto->value_case : ONNX__TYPE_PROTO__VALUE__NOT_SET) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE: {
        const Onnx__TypeProto__Tensor *tensor = proto->tensor_type;
        KilnDType dtype;
        if (kiln_dtype_from_onnx(tensor->elem_type, &dtype))
            return g_strdup_printf("rank %zu, at most %d", tensor->shape ? tensor->shape->n_dim : 0,
                                   KILN_MAX_RANK);
        g_autofree char *text = kiln_onnx_dtype_text(tensor->elem_type);
        return g_strdup_printf("element type %s", text);
    }
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return g_strdup("a sequence of this kind");
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return g_strdup("a map of this kind");
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return g_strdup("an optional of this kind");
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return g_strdup("a sparse tensor");
    default:
        return g_strdup("a type of another kind");
    }
}

/* The text form spells dims as identifiers; what is none becomes one, and stays distinct. */
static const char *
dim_name(const char *name, GHashTable *names, KilnArena *arena)
{
    const char *known = g_hash_table_lookup(names, name);
    if (known)
        return known;
    g_autoptr(GString) word = g_string_new(NULL);
    if (g_ascii_isdigit(*name))
        g_string_append_c(word, '_');
    for (const char *c = name; *c; c++)
        g_string_append_c(word, g_ascii_isalnum(*c) ? *c : '_');
    gsize length = word->len;
    /* Spellings in use are kept under a key that no name can be: it is no UTF-8 text. */
    for (unsigned i = 1;; i++) {
        g_autofree char *key = g_strconcat("\xFF", word->str, NULL);
        if (!g_hash_table_contains(names, key)) {
            g_hash_table_insert(names, kiln_arena_strdup(arena, key), (gpointer) "");
            break;
        }
        g_string_truncate(word, length);
        g_string_append_printf(word, "_%u", i);
    }
    char *spelling = kiln_arena_strdup(arena, word->str);
    g_hash_table_insert(names, kiln_arena_strdup(arena, name), spelling);
    return spelling;
}

void
kiln_onnx_name_dims(const char *input, GHashTable *dim_names, KilnModule *module, KilnType *type)
{
    for (int d = 0; d < type->rank; d++) {
        if (kiln_type_knows_dim(type, d))
            continue;
        g_autoptr(GString) name = g_string_new(NULL);
        g_string_printf(name, "%s_%d", input, d);
        while (g_hash_table_contains(dim_names, name->str)) /* the model has a dim of this name */
            g_string_append_c(name, '_');
        type->open[d] = kiln_dim_name(module->dims, dim_name(name->str, dim_names, module->arena));
    }
}

enum {
    MAX_CONTENTS = 3 /* types inside each other: an optional of a sequence of maps */
};

/* Elements have no dims by name: models give one name to dims in which elements differ. */
static KilnType
element_type(const KilnType *type)
{
    KilnType element = *type;
    for (int d = 0; d < element.rank; d++)
        element.open[d] = NULL;
    return element;
}

static KilnOnnxTypeKind
load_map(const Onnx__TypeProto__Map *map, GHashTable *dim_names, KilnModule *module, KilnType *out)
{
    KilnDType key;
    KilnType value;
    if (!map || !kiln_dtype_from_onnx(map->key_type, &key) ||
        (key != KILN_DTYPE_i64 && key != KILN_DTYPE_string) ||
        kiln_onnx_type_load(map->value_type, dim_names, module, &value) != KILN_ONNX_TYPE_TENSOR ||
        kiln_dtype_is_item(value.dtype))
        return KILN_ONNX_TYPE_OTHER;
    *out = kiln_type_of_map(module->arena, key, value.dtype);
    return KILN_ONNX_TYPE_TENSOR;
}

/* A sequence, an optional or a map, at most @depth deep. */
static KilnOnnxTypeKind
load_items(const Onnx__TypeProto *proto, GHashTable *dim_names, KilnModule *module, int depth,
           KilnType *out)
{
    const Onnx__TypeProto *inner = NULL;
    KilnDType dtype = KILN_DTYPE_sequence;
    KilnType type;
    if (proto->value_case == ONNX__TYPE_PROTO__VALUE_MAP_TYPE)
        return load_map(proto->map_type, dim_names, module, out);
    if (proto->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE)
        inner = proto->sequence_type->elem_type;
    if (proto->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        inner = proto->optional_type->elem_type;
        dtype = KILN_DTYPE_optional;
    }
    if (!inner || depth == 0)
        return KILN_ONNX_TYPE_OTHER;
    KilnOnnxTypeKind kind = inner->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                                ? kiln_onnx_type_load(inner, dim_names, module, &type)
                                : load_items(inner, dim_names, module, depth - 1, &type);
    bool fits = kind == KILN_ONNX_TYPE_TENSOR && type.dtype != KILN_DTYPE_optional &&
                (dtype == KILN_DTYPE_optional || type.dtype != KILN_DTYPE_sequence);
    if (!fits)
        return KILN_ONNX_TYPE_OTHER;
    type = element_type(&type);
    *out = kiln_type_of_items(module->arena, dtype, &type);
    return KILN_ONNX_TYPE_TENSOR;
}

KilnOnnxTypeKind
kiln_onnx_type_load(const Onnx__TypeProto *proto, GHashTable *dim_names, KilnModule *module,
                    KilnType *out)
{
    if (!proto || proto->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return proto && proto->base.n_unknown_fields ? KILN_ONNX_TYPE_OTHER : KILN_ONNX_TYPE_NONE;
    if (proto->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return load_items(proto, dim_names, module, MAX_CONTENTS, out);
    const Onnx__TypeProto__Tensor *tensor = proto->tensor_type;
    if (!tensor->elem_type)
        return KILN_ONNX_TYPE_NONE;
    KilnDType dtype;
    const Onnx__TensorShapeProto *shape = tensor->shape;
    if (!kiln_dtype_from_onnx(tensor->elem_type, &dtype) || (shape && shape->n_dim > KILN_MAX_RANK))
        return KILN_ONNX_TYPE_OTHER;
    *out = kiln_type_unranked(dtype);
    if (!shape)
        return KILN_ONNX_TYPE_TENSOR;
    out->rank = (int)shape->n_dim;
    for (int i = 0; i < out->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        out->dims[i] = KILN_DIM_UNKNOWN;
        out->open[i] = NULL;
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            out->dims[i] = dim->dim_value < 0 ? KILN_DIM_UNKNOWN : dim->dim_value;
        else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
                 dim->dim_param && *dim->dim_param)
            out->open[i] =
                kiln_dim_name(module->dims, dim_name(dim->dim_param, dim_names, module->arena));
    }
    return KILN_ONNX_TYPE_TENSOR;
}
