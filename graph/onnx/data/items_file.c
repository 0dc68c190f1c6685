/* SPDX-License-Identifier: Apache-2.0 */
/* SequenceProto, OptionalProto and MapProto: read and written as test data has them.
 *
 * A map has a list of keys and a sequence of as many scalars. Some writers put all values into one
 * tensor, which is read, too. */
#include "graph/onnx/onnx.h"

#include "graph/base/alloc.h"
#include "graph/base/item.h"
#include "graph/error.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/model.h"
#include "graph/onnx/tensor.h"
#include "graph/onnx/wire.h"
#include "graph/texts.h"

#include <string.h>

/* ITEMS_ELEM_TYPE: what a sequence or an optional has. */
enum {
    HAS_NOTHING,
    HAS_TENSORS,
    HAS_SPARSE_TENSORS,
    HAS_SEQUENCES,
    HAS_MAPS,
    HAS_OPTIONALS
};

/* The fields of parts come in the order of these numbers. */
#define FIELD_OF(has) ((uint32_t)(has) + ITEMS_TENSOR - HAS_TENSORS)

static const char *
name_of_parts(uint64_t has)
{
    static const char *const names[] = { "nothing",   "tensors", "sparse tensors",
                                         "sequences", "maps",    "optionals" };
    return has < G_N_ELEMENTS(names) ? names[has] : "parts of an unknown kind";
}

/* --- reading --- */

typedef struct {
    const uint8_t *base;
    KilnOnnxFiles *files;
} Reader;

/* What a message says of itself. */
typedef struct {
    KilnDType dtype;
    size_t offset;
    uint64_t elem_type;
    size_t n; /* parts */
    uint32_t field;
} Head;

static gboolean
throw_field(const KilnWireField *field, const char *expected, GError **error)
{
    return kiln_throw(error, KILN_ERROR_FORMAT,
                      "byte %zu: field %u: expected %s, found wire type %u", field->start,
                      field->number, expected, (unsigned)field->type);
}

static gboolean
finished(GError *failure, GError **error)
{
    if (failure)
        g_propagate_error(error, failure);
    return !failure;
}

static gboolean
read_head_field(const KilnWireField *field, Head *head, GError **error)
{
    if (field->number == ITEMS_ELEM_TYPE) {
        head->elem_type = field->value;
        return field->type == KILN_WIRE_VARINT || throw_field(field, "a number", error);
    }
    if (field->number < ITEMS_TENSOR || field->number > FIELD_OF(HAS_OPTIONALS))
        return TRUE;
    if (field->type != KILN_WIRE_BYTES)
        return throw_field(field, "a message", error);
    if (head->n && head->field != field->number)
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "byte %zu: expected one kind of parts, found fields %u and %u",
                          field->start, head->field, field->number);
    head->field = field->number;
    head->n++;
    return TRUE;
}

/* Counts the parts of a sequence or an optional and checks that they are what it says. */
static gboolean
read_head(const Reader *reader, KilnSpan span, Head *head, GError **error)
{
    KilnWire wire = kiln_wire(reader->base, span);
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (!read_head_field(&field, head, error))
            return FALSE;
    }
    if (!finished(failure, error))
        return FALSE;
    if (head->n && head->field != FIELD_OF(head->elem_type))
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "byte %zu: the %s: expected %s by its elem_type, found %s", head->offset,
                          kiln_dtype_name(head->dtype), name_of_parts(head->elem_type),
                          name_of_parts(head->field - ITEMS_TENSOR + HAS_TENSORS));
    return TRUE;
}

static KilnItem *
read_tensor(const Reader *reader, KilnSpan span, GError **error)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    KilnOnnxTensor scanned;
    if (!kiln_onnx_tensor_scan(reader->base, span, arena, &scanned, error))
        return NULL;
    g_autoptr(KilnTensor) tensor = kiln_onnx_tensor_load(&scanned, reader->files, error);
    g_autoptr(GBytes) bytes = tensor ? kiln_tensor_view(tensor, error) : NULL;
    return bytes ? kiln_item_new_tensor(tensor->type.dtype, tensor->type.rank, tensor->type.dims,
                                        g_bytes_get_data(bytes, NULL), error)
                 : NULL;
}

static KilnItem *read_sequence(const Reader *reader, KilnSpan span, GError **error);
static KilnItem *read_map(const Reader *reader, KilnSpan span, const KilnType *type,
                          GError **error);

/* A part of @head: what @field says. */
static KilnItem *
read_part(const Reader *reader, const Head *head, KilnSpan span, GError **error)
{
    switch (head->elem_type) {
    case HAS_TENSORS:
        return read_tensor(reader, span, error);
    case HAS_MAPS:
        return read_map(reader, span, NULL, error);
    case HAS_SEQUENCES:
        if (head->dtype == KILN_DTYPE_optional)
            return read_sequence(reader, span, error);
        break;
    default:
        break;
    }
    kiln_throw(
        error, KILN_ERROR_UNSUPPORTED, "byte %zu: expected a %s of tensors%s or maps, found %s",
        head->offset, kiln_dtype_name(head->dtype),
        head->dtype == KILN_DTYPE_optional ? ", sequences" : "", name_of_parts(head->elem_type));
    return NULL;
}

static void
free_items(KilnItem **items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kiln_item_unref(items[i]);
    kiln_free(items);
}

/* All parts of @head into @items; *@out_n are there. */
static gboolean
read_parts(const Reader *reader, const Head *head, KilnSpan span, KilnItem **items, size_t *out_n,
           GError **error)
{
    KilnWire wire = kiln_wire(reader->base, span);
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (field.number != head->field || !head->n)
            continue;
        KilnItem *item = read_part(reader, head, field.payload, error);
        if (!item) {
            if (head->dtype == KILN_DTYPE_sequence)
                kiln_prefix_error(error, "item %zu: ", *out_n);
            return FALSE;
        }
        items[(*out_n)++] = item;
    }
    return finished(failure, error);
}

static KilnItem *
read_sequence(const Reader *reader, KilnSpan span, GError **error)
{
    Head head = { .dtype = KILN_DTYPE_sequence, .offset = span.offset };
    if (!read_head(reader, span, &head, error))
        return NULL;
    KilnItem **items = kiln_alloc_for("a sequence", head.n, sizeof *items, error);
    if (!items)
        return NULL;
    size_t n = 0;
    KilnItem *sequence = NULL;
    if (read_parts(reader, &head, span, items, &n, error) &&
        !(sequence = kiln_item_new_sequence(items, n, error))) {
        kiln_prefix_error(error, "byte %zu: ", span.offset);
        if (error && *error && (*error)->code == KILN_ERROR_USAGE)
            (*error)->code = KILN_ERROR_FORMAT;
    }
    free_items(items, n);
    return sequence;
}

/* An optional says what it may have even where it has nothing. */
static KilnItem *
read_optional(const Reader *reader, KilnSpan span, GError **error)
{
    Head head = { .dtype = KILN_DTYPE_optional, .offset = span.offset };
    if (!read_head(reader, span, &head, error))
        return NULL;
    if (head.n > 1) {
        kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: an optional: expected one value, found %zu",
                   span.offset, head.n);
        return NULL;
    }
    KilnItem *items[1] = { NULL };
    size_t n = 0;
    if (!read_parts(reader, &head, span, items, &n, error))
        return NULL;
    KilnItem *optional = kiln_item_new_optional(items[0], error);
    kiln_item_unref(items[0]);
    return optional;
}

/* --- reading maps --- */

typedef struct {
    int64_t key_type;
    size_t n;        /* keys */
    KilnSpan values; /* length 0: none yet */
    bool has_values;
    int64_t *numbers; /* NULL: only counted */
    KilnText *texts;
} Map;

/* The next of the numbers that @at … @end are packed with; false where it is cut off. */
static bool
next_packed(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 70; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift < 64)
            *out |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static void
take_number(Map *map, uint64_t value)
{
    if (map->numbers)
        map->numbers[map->n] = (int64_t)value;
    map->n++;
}

/* One number, or several that are packed. */
static gboolean
read_numbers(const Reader *reader, const KilnWireField *field, Map *map, GError **error)
{
    if (field->type == KILN_WIRE_VARINT) {
        take_number(map, field->value);
        return TRUE;
    }
    if (field->type != KILN_WIRE_BYTES)
        return throw_field(field, "numbers", error);
    const uint8_t *at = reader->base + field->payload.offset, *end = at + field->payload.length;
    while (at < end) {
        uint64_t value;
        if (!next_packed(&at, end, &value))
            return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a packed key is cut off",
                              field->start);
        take_number(map, value);
    }
    return TRUE;
}

static gboolean
read_map_field(const Reader *reader, const KilnWireField *field, Map *map, GError **error)
{
    bool texts = map->key_type == kiln_dtype_to_onnx(KILN_DTYPE_string);
    switch (field->number) {
    case MAP_KEYS:
        return texts ? kiln_throw(error, KILN_ERROR_FORMAT,
                                  "byte %zu: a map: expected keys of strings, found numbers",
                                  field->start)
                     : read_numbers(reader, field, map, error);
    case MAP_STRING_KEYS:
        if (field->type != KILN_WIRE_BYTES)
            return throw_field(field, "a text", error);
        if (!texts)
            return kiln_throw(error, KILN_ERROR_FORMAT,
                              "byte %zu: a map: expected keys of numbers, found strings",
                              field->start);
        if (map->texts)
            map->texts[map->n] = (KilnText){ (const char *)reader->base + field->payload.offset,
                                             field->payload.length };
        map->n++;
        return TRUE;
    case MAP_VALUES:
        if (field->type != KILN_WIRE_BYTES)
            return throw_field(field, "a message", error);
        if (map->has_values && !map->numbers && !map->texts)
            return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a map has values twice",
                              field->start);
        map->has_values = true;
        map->values = field->payload;
        return TRUE;
    default:
        return TRUE;
    }
}

static gboolean
walk_map(const Reader *reader, KilnSpan span, Map *map, GError **error)
{
    KilnWire wire = kiln_wire(reader->base, span);
    KilnWireField field;
    GError *failure = NULL;
    map->n = 0;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (!read_map_field(reader, &field, map, error))
            return FALSE;
    }
    return finished(failure, error);
}

/* The type of the keys stands before them in no certain order. */
static gboolean
read_key_type(const Reader *reader, KilnSpan span, Map *map, GError **error)
{
    KilnWire wire = kiln_wire(reader->base, span);
    KilnWireField field;
    GError *failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        if (field.number == MAP_KEY_TYPE)
            map->key_type = (int64_t)field.value;
    }
    if (!finished(failure, error))
        return FALSE;
    if (map->key_type == kiln_dtype_to_onnx(KILN_DTYPE_i64) ||
        map->key_type == kiln_dtype_to_onnx(KILN_DTYPE_string))
        return TRUE;
    g_autofree char *found = kiln_onnx_dtype_text(map->key_type);
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "byte %zu: a map: expected keys of int64 or string, found %s", span.offset,
                      found);
}

static KilnItem *
keys_of_numbers(const Reader *reader, KilnSpan span, Map *map, GError **error)
{
    const int64_t n = (int64_t)map->n;
    map->numbers = kiln_alloc_for("the keys of a map", map->n, sizeof *map->numbers, error);
    KilnItem *keys = NULL;
    if (map->numbers && walk_map(reader, span, map, error))
        keys = kiln_item_new_tensor(KILN_DTYPE_i64, 1, &n, map->numbers, error);
    kiln_free(map->numbers);
    return keys;
}

static KilnItem *
keys_of_texts(const Reader *reader, KilnSpan span, Map *map, GError **error)
{
    const int64_t n = (int64_t)map->n;
    map->texts = kiln_alloc_for("the keys of a map", map->n, sizeof *map->texts, error);
    const KilnText **elements =
        kiln_alloc_for("the keys of a map", map->n, sizeof *elements, error);
    KilnItem *keys = NULL;
    if (map->texts && elements && walk_map(reader, span, map, error)) {
        for (size_t i = 0; i < map->n; i++)
            elements[i] = &map->texts[i];
        keys = kiln_item_new_tensor(KILN_DTYPE_string, 1, &n, elements, error);
        if (!keys)
            kiln_prefix_error(error, "byte %zu: the keys of a map: ", span.offset);
    }
    kiln_free(elements);
    kiln_free(map->texts);
    return keys;
}

/* The elements of @sequence, of one type, as a tensor of rank 1. */
static KilnItem *
join_values(const KilnItem *sequence, KilnDType dtype, size_t offset, GError **error)
{
    size_t n = kiln_item_length(sequence), size = kiln_dtype_size(dtype), bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const KilnItem *item = kiln_item_get(sequence, i);
        int rank;
        kiln_item_dims(item, &rank);
        if (kiln_dtype_is_item(kiln_item_dtype(item)) || rank > 1) {
            kiln_throw(error, KILN_ERROR_FORMAT,
                       "byte %zu: a map: value %zu: expected a tensor of one element", offset, i);
            return NULL;
        }
        bytes += kiln_item_bytes(item);
    }
    uint8_t *elements = kiln_alloc_for("the values of a map", 1, bytes, error);
    if (!elements)
        return NULL;
    for (size_t i = 0, at = 0; i < n; i++) {
        const KilnItem *item = kiln_item_get(sequence, i);
        if (kiln_item_bytes(item))
            memcpy(elements + at, kiln_item_data(item), kiln_item_bytes(item));
        at += kiln_item_bytes(item);
    }
    const int64_t dim = (int64_t)(bytes / size);
    KilnItem *values = kiln_item_new_tensor(dtype, 1, &dim, elements, error);
    kiln_free(elements);
    return values;
}

static KilnItem *
read_map(const Reader *reader, KilnSpan span, const KilnType *type, GError **error)
{
    Map map = { 0 };
    if (!read_key_type(reader, span, &map, error) || !walk_map(reader, span, &map, error))
        return NULL;
    size_t n = map.n;
    bool texts = map.key_type == kiln_dtype_to_onnx(KILN_DTYPE_string);
    g_autoptr(KilnItem) keys = texts ? keys_of_texts(reader, span, &map, error)
                                     : keys_of_numbers(reader, span, &map, error);
    if (!keys)
        return NULL;
    const KilnSpan none = { span.offset, 0 };
    g_autoptr(KilnItem) sequence = read_sequence(reader, map.has_values ? map.values : none, error);
    if (!sequence) {
        kiln_prefix_error(error, "the values of a map: ");
        return NULL;
    }
    const KilnItem *first = kiln_item_get(sequence, 0);
    KilnDType dtype = first                    ? kiln_item_dtype(first)
                      : type && type->contents ? type->contents->type.dtype
                                               : KILN_DTYPE_f32;
    g_autoptr(KilnItem) values = join_values(sequence, dtype, span.offset, error);
    if (!values)
        return NULL;
    int rank;
    if (kiln_item_dims(values, &rank)[0] != (int64_t)n) {
        kiln_throw(
            error, KILN_ERROR_FORMAT,
            "byte %zu: a map: expected a value for each of %zu keys, found %" G_GINT64_FORMAT,
            span.offset, n, kiln_item_dims(values, &rank)[0]);
        return NULL;
    }
    return kiln_item_new_map(keys, values, error);
}

KilnItem *
kiln_onnx_item_parse(GBytes *bytes, const char *path, const KilnType *type, GError **error)
{
    KilnOnnxFiles files;
    kiln_onnx_files_init(&files, bytes, path);
    size_t size;
    const uint8_t *data = g_bytes_get_data(bytes, &size);
    const Reader reader = { data ? data : (const uint8_t *)"", &files };
    const KilnSpan whole = { 0, size };
    KilnItem *item = type->dtype == KILN_DTYPE_sequence   ? read_sequence(&reader, whole, error)
                     : type->dtype == KILN_DTYPE_optional ? read_optional(&reader, whole, error)
                                                          : read_map(&reader, whole, type, error);
    if (!item && path)
        kiln_prefix_error(error, "%s: ", path);
    kiln_onnx_files_clear(&files);
    return item;
}

/* --- writing --- */

static uint32_t
parts_of(const KilnItem *part)
{
    KilnDType dtype = kiln_item_dtype(part);
    return dtype == KILN_DTYPE_map        ? HAS_MAPS
           : dtype == KILN_DTYPE_sequence ? HAS_SEQUENCES
                                          : HAS_TENSORS;
}

/* The length of a message is a number of 31 bits to most readers. */
static gboolean
put_message(GByteArray *out, uint32_t field, const GByteArray *message, GError **error)
{
    if ((size_t)out->len + message->len > G_MAXINT32)
        return kiln_throw(error, KILN_ERROR_LIMIT,
                          "a sequence has more than %d bytes: protobuf holds 2 GiB", G_MAXINT32);
    kiln_wire_put_message(out, field, message);
    return TRUE;
}

static gboolean
put_tensor(const KilnType *type, const void *data, GByteArray *out, GError **error)
{
    g_autoptr(KilnTensor) tensor = kiln_tensor_new_copy(type, data, error);
    return tensor && kiln_onnx_tensor_write(tensor, NULL, out, error);
}

/* The values as scalars: what reads maps takes one tensor for each key. */
static gboolean
put_values(const KilnItem *values, GByteArray *out, GError **error)
{
    const KilnType type = kiln_type_scalar(kiln_item_dtype(values));
    size_t size = kiln_dtype_size(type.dtype);
    const char *data = kiln_item_data(values);
    kiln_wire_put_varint(out, ITEMS_ELEM_TYPE, HAS_TENSORS);
    for (size_t at = 0; at < kiln_item_bytes(values); at += size) {
        g_autoptr(GByteArray) tensor = g_byte_array_new();
        if (!put_tensor(&type, data + at, tensor, error) ||
            !put_message(out, ITEMS_TENSOR, tensor, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
put_map(const KilnItem *map, GByteArray *out, GError **error)
{
    const KilnItem *keys = kiln_item_get(map, 0);
    if (!keys)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "a map without a type of its keys cannot be written");
    KilnDType dtype = kiln_item_dtype(keys);
    size_t n = kiln_item_bytes(keys) / kiln_dtype_size(dtype);
    const void *data = kiln_item_data(keys);
    kiln_wire_put_varint(out, MAP_KEY_TYPE, (uint64_t)kiln_dtype_to_onnx(dtype));
    for (size_t i = 0; i < n && dtype == KILN_DTYPE_i64; i++)
        kiln_wire_put_varint(out, MAP_KEYS, (uint64_t)((const int64_t *)data)[i]);
    for (size_t i = 0; i < n && dtype == KILN_DTYPE_string; i++) {
        const KilnText text = kiln_text_of(((const KilnText *const *)data)[i]);
        if (text.length > (size_t)G_MAXINT32 - MIN(out->len, (guint)G_MAXINT32))
            return kiln_throw(error, KILN_ERROR_LIMIT, "the keys of a map have more than 2 GiB");
        kiln_wire_put_bytes(out, MAP_STRING_KEYS, text.text, text.length);
    }
    g_autoptr(GByteArray) values = g_byte_array_new();
    return put_values(kiln_item_get(map, 1), values, error) &&
           put_message(out, MAP_VALUES, values, error);
}

static gboolean put_item(const KilnItem *item, GByteArray *out, GError **error);

static gboolean
put_parts(const KilnItem *item, GByteArray *out, GError **error)
{
    size_t n = kiln_item_length(item);
    uint32_t has = n ? parts_of(kiln_item_get(item, 0))
                   : item && kiln_item_dtype(item) == KILN_DTYPE_optional ? HAS_NOTHING
                                                                          : HAS_TENSORS;
    kiln_wire_put_varint(out, ITEMS_ELEM_TYPE, has);
    for (size_t i = 0; i < n; i++) {
        g_autoptr(GByteArray) part = g_byte_array_new();
        if (!put_item(kiln_item_get(item, i), part, error) ||
            !put_message(out, FIELD_OF(has), part, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
put_item(const KilnItem *item, GByteArray *out, GError **error)
{
    KilnDType dtype = kiln_item_dtype(item);
    if (dtype == KILN_DTYPE_map)
        return put_map(item, out, error);
    if (kiln_dtype_is_item(dtype))
        return put_parts(item, out, error);
    const KilnType type = kiln_item_type(item);
    return put_tensor(&type, kiln_item_data(item), out, error);
}

gboolean
kiln_onnx_item_write(const KilnItem *item, KilnDType dtype, const char *name, GByteArray *out,
                     GError **error)
{
    if (name && *name)
        kiln_wire_put_text(out, ITEMS_NAME, name);
    if (item)
        return put_item(item, out, error);
    if (dtype == KILN_DTYPE_map)
        return put_map(NULL, out, error);
    kiln_wire_put_varint(out, ITEMS_ELEM_TYPE,
                         dtype == KILN_DTYPE_sequence ? HAS_TENSORS : HAS_NOTHING);
    return TRUE;
}
