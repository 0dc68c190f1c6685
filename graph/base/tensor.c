/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: the kinds of payload and how each becomes bytes. */
#include "graph/tensor.h"

#include "graph/base/alloc.h"
#include "graph/base/item.h"
#include "graph/base/map_file.h"
#include "graph/base/number.h"
#include "graph/base/random.h"
#include "graph/texts.h"

#include <string.h>

enum {
    WORTH_DROPPING = 64 * 1024, /* bytes of a map: fewer are not worth a system call */
    STRIP = 1024 * 1024         /* bytes that are copied before their pages are dropped */
};

static KilnTensor *
tensor_new(KilnTensorKind kind, const KilnType *type)
{
    KilnTensor *tensor = g_new0(KilnTensor, 1);
    tensor->kind = kind;
    tensor->type = kiln_type_make(type->dtype, type->rank, type->dims);
    return tensor;
}

void
kiln_tensor_free(KilnTensor *tensor)
{
    if (!tensor)
        return;
    g_clear_pointer(&tensor->bytes, g_bytes_unref);
    g_free(tensor->file);
    g_free(tensor);
}

KilnTensor *
kiln_tensor_copy(const KilnTensor *tensor)
{
    KilnTensor *copy = g_new(KilnTensor, 1);
    *copy = *tensor;
    copy->bytes = tensor->bytes ? g_bytes_ref(tensor->bytes) : NULL;
    copy->file = g_strdup(tensor->file);
    return copy;
}

static KilnTensor *
new_of_size(KilnTensorKind kind, const KilnType *type, int64_t expected, GBytes *bytes,
            GError **error)
{
    if (expected < 0) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw_null(error, KILN_ERROR_SHAPE,
                               "expected a static shape of less than 2^63 bytes, found %s", text);
    }
    if ((uint64_t)expected != g_bytes_get_size(bytes)) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw_null(error, KILN_ERROR_SHAPE,
                               "expected %" G_GINT64_FORMAT " bytes for %s, found %zu", expected,
                               text, g_bytes_get_size(bytes));
    }
    KilnTensor *tensor = tensor_new(kind, type);
    tensor->bytes = g_bytes_ref(bytes);
    return tensor;
}

static void
release_item(gpointer element)
{
    kiln_item_unref(*(KilnItem **)element);
    g_free(element);
}

/* The element of a tensor of an item, whose owner the bytes are. */
static GBytes *
hold_item(KilnItem *item)
{
    KilnItem **element = g_new(KilnItem *, 1);
    *element = kiln_item_ref(item);
    return g_bytes_new_with_free_func(element, sizeof *element, release_item, element);
}

KilnTensor *
kiln_tensor_new_item(const KilnType *type, KilnItem *item)
{
    KilnTensor *tensor = tensor_new(KILN_TENSOR_DATA, type);
    tensor->bytes = hold_item(item);
    return tensor;
}

KilnTensor *
kiln_tensor_new_data(const KilnType *type, GBytes *bytes, GError **error)
{
    KilnTensor *tensor = new_of_size(KILN_TENSOR_DATA, type, kiln_type_bytes(type), bytes, error);
    if (!tensor || !kiln_dtype_is_address(type->dtype))
        return tensor;
    const void *elements = g_bytes_get_data(bytes, NULL);
    GBytes *copy = kiln_dtype_is_item(type->dtype)
                       ? hold_item(kiln_item_of(elements))
                       : kiln_texts_copy(elements, kiln_type_elements(type), error);
    g_bytes_unref(tensor->bytes);
    tensor->bytes = copy;
    if (!copy)
        g_clear_pointer(&tensor, kiln_tensor_free);
    return tensor;
}

/* A bool is a byte, too. */
static bool
is_packed(KilnDType dtype)
{
    return !kiln_dtype_is_address(dtype) && kiln_dtype_bits(dtype) < 8;
}

int64_t
kiln_tensor_stored_bytes(const KilnType *type)
{
    int64_t bytes = kiln_dtype_is_address(type->dtype) ? -1 : kiln_type_bytes(type);
    return bytes < 0 || !is_packed(type->dtype) ? bytes : kiln_packed_bytes(type->dtype, bytes);
}

/* The tensor of elements that @bytes hold with their texts. */
static KilnTensor *
new_held(const KilnType *type, GBytes *bytes)
{
    KilnTensor *tensor = bytes ? tensor_new(KILN_TENSOR_DATA, type) : NULL;
    if (tensor)
        tensor->bytes = g_bytes_ref(bytes);
    return tensor;
}

static KilnTensor *
new_stored_texts(const KilnType *type, GBytes *stored, GError **error)
{
    size_t size;
    const void *data = g_bytes_get_data(stored, &size);
    g_autoptr(GBytes) bytes = kiln_texts_load(data, size, kiln_type_elements(type), error);
    return new_held(type, bytes);
}

KilnTensor *
kiln_tensor_new_stored(const KilnType *type, GBytes *bytes, GError **error)
{
    if (type->dtype == KILN_DTYPE_string)
        return new_stored_texts(type, bytes, error);
    return new_of_size(is_packed(type->dtype) ? KILN_TENSOR_PACKED : KILN_TENSOR_DATA, type,
                       kiln_tensor_stored_bytes(type), bytes, error);
}

GBytes *
kiln_tensor_stored(const KilnTensor *tensor, GError **error)
{
    if (tensor->type.dtype == KILN_DTYPE_string) {
        g_autoptr(GBytes) elements = kiln_tensor_view(tensor, error);
        return elements ? kiln_texts_store(g_bytes_get_data(elements, NULL),
                                           kiln_type_elements(&tensor->type), error)
                        : NULL;
    }
    if (tensor->kind == KILN_TENSOR_PACKED || !is_packed(tensor->type.dtype))
        return tensor->bytes ? g_bytes_ref(tensor->bytes) : kiln_tensor_view(tensor, error);
    g_autoptr(GBytes) view = kiln_tensor_view(tensor, error);
    void *memory;
    int64_t n = view ? (int64_t)g_bytes_get_size(view) : 0;
    g_autoptr(GBytes) bytes = kiln_bytes_new(
        1, view ? (size_t)kiln_packed_bytes(tensor->type.dtype, n) : 0, &memory, error);
    if (!view || !bytes)
        return NULL;
    kiln_pack_elements(tensor->type.dtype, memory, g_bytes_get_data(view, NULL), n);
    return g_steal_pointer(&bytes);
}

KilnTensor *
kiln_tensor_new_copy(const KilnType *type, const void *data, GError **error)
{
    int64_t size = kiln_type_bytes(type);
    void *memory;
    g_autoptr(GBytes) bytes = kiln_bytes_new(1, size < 0 ? SIZE_MAX : (size_t)size, &memory, error);
    if (!bytes)
        return NULL;
    if (size)
        memcpy(memory, data, (size_t)size);
    return kiln_tensor_new_data(type, bytes, error);
}

/* The text of a splat becomes its own. */
static void
own_text(KilnTensor *tensor)
{
    const KilnText *text;
    memcpy(&text, tensor->splat, sizeof text);
    tensor->bytes = kiln_texts_own(text);
    memcpy(tensor->splat, g_bytes_get_data(tensor->bytes, NULL), sizeof text);
}

KilnTensor *
kiln_tensor_new_splat_bits(const KilnType *type, const void *element)
{
    KilnTensor *tensor = tensor_new(KILN_TENSOR_SPLAT, type);
    memcpy(tensor->splat, element, kiln_dtype_size(type->dtype));
    if (type->dtype == KILN_DTYPE_string)
        own_text(tensor);
    else if (kiln_dtype_is_item(type->dtype))
        memset(tensor->splat, 0, sizeof tensor->splat); /* an empty one */
    return tensor;
}

KilnTensor *
kiln_tensor_new_splat(const KilnType *type, double value)
{
    uint8_t element[8] = { 0 };
    kiln_element_store_f64(type->dtype, element, 0, value);
    return kiln_tensor_new_splat_bits(type, element);
}

KilnTensor *
kiln_tensor_new_normal(const KilnType *type, uint64_t seed, double std)
{
    KilnTensor *tensor = tensor_new(KILN_TENSOR_NORMAL, type);
    tensor->seed = seed;
    tensor->std = std;
    return tensor;
}

KilnTensor *
kiln_tensor_new_uniform(const KilnType *type, uint64_t seed, double low, double high)
{
    KilnTensor *tensor = tensor_new(KILN_TENSOR_UNIFORM, type);
    tensor->seed = seed;
    tensor->low = low;
    tensor->high = high;
    return tensor;
}

KilnTensor *
kiln_tensor_new_iota(const KilnType *type)
{
    return tensor_new(KILN_TENSOR_IOTA, type);
}

KilnTensor *
kiln_tensor_new_sparse(const KilnType *type)
{
    return tensor_new(KILN_TENSOR_SPARSE, type);
}

KilnTensor *
kiln_tensor_new_extern(const KilnType *type)
{
    return tensor_new(KILN_TENSOR_EXTERN, type);
}

KilnTensor *
kiln_tensor_new_texts(const KilnType *type, const KilnText *texts, size_t n, GError **error)
{
    int64_t expected = kiln_type_elements(type);
    if (expected < 0 || (uint64_t)expected != n)
        return kiln_throw_null(error, KILN_ERROR_SHAPE,
                               "expected %" G_GINT64_FORMAT " strings, found %zu", expected, n);
    g_autofree const KilnText **elements = g_new(const KilnText *, n + 1);
    for (size_t i = 0; i < n; i++)
        elements[i] = &texts[i];
    if (!kiln_texts_check(elements, expected, "strings", error))
        return NULL;
    g_autoptr(GBytes) bytes = kiln_texts_copy(elements, expected, error);
    return new_held(type, bytes);
}

int64_t
kiln_tensor_storage(const KilnTensor *tensor)
{
    return tensor->bytes && tensor->kind != KILN_TENSOR_SPLAT
               ? (int64_t)g_bytes_get_size(tensor->bytes)
               : 0;
}

static void
write_splat(const KilnTensor *tensor, uint8_t *out, int64_t elements)
{
    size_t size = kiln_dtype_size(tensor->type.dtype);
    for (int64_t i = 0; i < elements; i++)
        memcpy(out + (size_t)i * size, tensor->splat, size);
}

gboolean
kiln_tensor_write(const KilnTensor *tensor, void *out, GError **error)
{
    KilnDType dtype = tensor->type.dtype;
    int64_t elements = kiln_type_elements(&tensor->type);
    switch (tensor->kind) {
    case KILN_TENSOR_DATA: {
        size_t size;
        const void *data = g_bytes_get_data(tensor->bytes, &size);
        if (size)
            memcpy(out, data, size);
        return TRUE;
    }
    case KILN_TENSOR_PACKED:
        kiln_unpack_elements(dtype, out, g_bytes_get_data(tensor->bytes, NULL), 0, elements);
        return TRUE;
    case KILN_TENSOR_SPLAT:
        write_splat(tensor, out, elements);
        return TRUE;
    case KILN_TENSOR_NORMAL:
        for (int64_t i = 0; i < elements; i++)
            kiln_element_store_f64(dtype, out, i,
                                   tensor->std * kiln_random_normal(tensor->seed, (uint64_t)i));
        return TRUE;
    case KILN_TENSOR_UNIFORM:
        for (int64_t i = 0; i < elements; i++) {
            double unit = kiln_random_unit(tensor->seed, (uint64_t)i);
            kiln_element_store_f64(dtype, out, i,
                                   tensor->low + unit * (tensor->high - tensor->low));
        }
        return TRUE;
    case KILN_TENSOR_IOTA:
        for (int64_t i = 0; i < elements; i++)
            kiln_element_store_f64(dtype, out, i, (double)i);
        return TRUE;
    case KILN_TENSOR_SPARSE:
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "sparse tensors are not supported");
    case KILN_TENSOR_EXTERN:
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "the values are extern: the program file holds them, packed");
    }
    return FALSE;
}

static const KilnText *
text_of_splat(const KilnTensor *splat)
{
    const KilnText *text;
    memcpy(&text, splat->splat, sizeof text);
    return text;
}

/* Elements that hold their texts. */
static GBytes *
view_texts(const KilnTensor *tensor, GError **error)
{
    int64_t n = kiln_type_elements(&tensor->type);
    void *memory;
    if (tensor->kind == KILN_TENSOR_SPLAT)
        return kiln_texts_repeat(text_of_splat(tensor), n, error);
    g_autoptr(GBytes) elements =
        kiln_bytes_new(n < 0 ? SIZE_MAX : (size_t)n, sizeof(KilnText *), &memory, error);
    return elements && kiln_tensor_write(tensor, memory, error) ? kiln_texts_copy(memory, n, error)
                                                                : NULL;
}

GBytes *
kiln_tensor_view(const KilnTensor *tensor, GError **error)
{
    if (tensor->kind == KILN_TENSOR_DATA) {
        uintptr_t address = (uintptr_t)g_bytes_get_data(tensor->bytes, NULL);
        size_t unit = MAX(kiln_dtype_size(tensor->type.dtype), (size_t)1);
        if (address % unit == 0)
            return g_bytes_ref(tensor->bytes);
    }
    if (tensor->type.dtype == KILN_DTYPE_string)
        return view_texts(tensor, error);
    /* The payload of a value in a blocked layout is padded: its own size counts. */
    int64_t size = tensor->kind == KILN_TENSOR_DATA ? kiln_tensor_storage(tensor)
                                                    : kiln_type_bytes(&tensor->type);
    void *memory;
    g_autoptr(GBytes) bytes = kiln_bytes_new(1, size < 0 ? SIZE_MAX : (size_t)size, &memory, error);
    return bytes && kiln_tensor_write(tensor, memory, error) ? g_steal_pointer(&bytes) : NULL;
}

static void
drop(const char *data, size_t size)
{
    if (size >= WORTH_DROPPING)
        kiln_map_drop(data, size);
}

void
kiln_tensor_drop_pages(const KilnTensor *tensor)
{
    size_t size = 0;
    const char *data = tensor->mapped ? g_bytes_get_data(tensor->bytes, &size) : NULL;
    drop(data, size);
}

void
kiln_tensor_drain(const KilnTensor *tensor, void *out)
{
    size_t size;
    const char *data = g_bytes_get_data(tensor->bytes, &size);
    for (size_t at = 0; at < size; at += STRIP) {
        size_t n = MIN(size - at, (size_t)STRIP);
        memcpy((char *)out + at, data + at, n);
        if (tensor->mapped)
            drop(data + at, n);
    }
}

/* A splat is not spread out. */
static bool
equals_splat(const KilnTensor *tensor, const KilnTensor *splat)
{
    const KilnText *text = text_of_splat(splat);
    if (tensor->kind == KILN_TENSOR_SPLAT)
        return kiln_text_equal(text_of_splat(tensor), text);
    g_autoptr(GBytes) view = kiln_tensor_view(tensor, NULL);
    const KilnText *const *elements = view ? g_bytes_get_data(view, NULL) : NULL;
    bool equal = view != NULL;
    for (int64_t i = 0; equal && i < kiln_type_elements(&tensor->type); i++)
        equal = kiln_text_equal(elements[i], text);
    return equal;
}

static bool
equal_texts(const KilnTensor *a, const KilnTensor *b)
{
    if (a->kind == KILN_TENSOR_SPLAT || b->kind == KILN_TENSOR_SPLAT)
        return a->kind == KILN_TENSOR_SPLAT ? equals_splat(b, a) : equals_splat(a, b);
    g_autoptr(GBytes) left = kiln_tensor_view(a, NULL);
    g_autoptr(GBytes) right = kiln_tensor_view(b, NULL);
    if (!left || !right)
        return false;
    const KilnText *const *x = g_bytes_get_data(left, NULL), *const *y =
                                                                 g_bytes_get_data(right, NULL);
    bool equal = true;
    for (int64_t i = 0; equal && i < kiln_type_elements(&a->type); i++)
        equal = kiln_text_equal(x[i], y[i]);
    return equal;
}

KilnItem *
kiln_tensor_item(const KilnTensor *tensor)
{
    return tensor->kind == KILN_TENSOR_DATA ? kiln_item_of(g_bytes_get_data(tensor->bytes, NULL))
                                            : NULL;
}

bool
kiln_tensor_equal(const KilnTensor *a, const KilnTensor *b)
{
    if (a == b)
        return true;
    if (!kiln_type_equal(&a->type, &b->type))
        return false;
    if (a->type.dtype == KILN_DTYPE_string)
        return equal_texts(a, b);
    if (kiln_dtype_is_item(a->type.dtype))
        return kiln_item_equal(kiln_tensor_item(a), kiln_tensor_item(b));
    if (a->kind == b->kind && a->kind == KILN_TENSOR_SPLAT)
        return memcmp(a->splat, b->splat, kiln_dtype_size(a->type.dtype)) == 0;
    bool generated = a->kind == KILN_TENSOR_NORMAL || a->kind == KILN_TENSOR_UNIFORM;
    if (generated && a->kind == b->kind && a->seed == b->seed && a->std == b->std &&
        a->low == b->low && a->high == b->high)
        return true;
    if (a->kind == b->kind && a->kind == KILN_TENSOR_DATA)
        return g_bytes_equal(a->bytes, b->bytes);
    g_autoptr(GBytes) left = kiln_tensor_view(a, NULL);
    g_autoptr(GBytes) right = kiln_tensor_view(b, NULL);
    return left && right && g_bytes_equal(left, right);
}

enum {
    SAMPLE_TEXTS = 8
};

uint64_t
kiln_tensor_hash_texts(const KilnTensor *tensor)
{
    const int64_t n = MIN(kiln_type_elements(&tensor->type), (int64_t)SAMPLE_TEXTS);
    uint64_t hash = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        const KilnText *text;
        const char *data =
            tensor->kind == KILN_TENSOR_SPLAT
                ? (const char *)tensor->splat
                : (const char *)g_bytes_get_data(tensor->bytes, NULL) + (size_t)i * sizeof text;
        memcpy(&text, data, sizeof text);
        hash = hash * UINT64_C(0x9E3779B97F4A7C15) + kiln_text_hash(text);
    }
    return hash;
}

/* The same of a PACKED payload. */
static bool
packed_is_splat(const KilnTensor *tensor, int64_t elements, uint8_t element[8])
{
    const void *data = g_bytes_get_data(tensor->bytes, NULL);
    memset(element, 0, 8);
    kiln_unpack_elements(tensor->type.dtype, element, data, 0, 1);
    for (int64_t i = 1; i < elements; i++) {
        uint8_t other;
        kiln_unpack_elements(tensor->type.dtype, &other, data, i, 1);
        if (other != element[0])
            return false;
    }
    return true;
}

bool
kiln_tensor_is_splat(const KilnTensor *tensor, int64_t max_elements, uint8_t element[8])
{
    size_t size = kiln_dtype_size(tensor->type.dtype);
    if (tensor->kind == KILN_TENSOR_SPLAT) {
        memcpy(element, tensor->splat, 8);
        return true;
    }
    int64_t elements = kiln_type_elements(&tensor->type);
    if (elements < 1 || elements > max_elements)
        return false;
    if (tensor->kind == KILN_TENSOR_PACKED)
        return packed_is_splat(tensor, elements, element);
    if (tensor->kind != KILN_TENSOR_DATA)
        return false;
    size_t stored;
    const uint8_t *data = g_bytes_get_data(tensor->bytes, &stored);
    if (stored != (size_t)elements * size) /* a layout has them among padding */
        return false;
    const KilnText *const *texts = (const KilnText *const *)(const void *)data;
    for (int64_t i = 1; i < elements; i++) {
        if (memcmp(data, data + (size_t)i * size, size) != 0 &&
            (tensor->type.dtype != KILN_DTYPE_string || !kiln_text_equal(texts[0], texts[i])))
            return false;
    }
    memset(element, 0, 8);
    memcpy(element, data, size);
    return true;
}

KilnTensor *
kiln_tensor_compact(KilnTensor *tensor)
{
    uint8_t element[8];
    if (!tensor || tensor->kind != KILN_TENSOR_DATA || kiln_type_elements(&tensor->type) == 1)
        return tensor;
    KilnTensor *smaller = NULL;
    if (kiln_tensor_is_splat(tensor, INT64_MAX, element)) {
        smaller = kiln_tensor_new_splat_bits(&tensor->type, element);
    } else if (is_packed(tensor->type.dtype)) {
        g_autoptr(GBytes) packed = kiln_tensor_stored(tensor, NULL);
        smaller = packed ? kiln_tensor_new_stored(&tensor->type, packed, NULL) : NULL;
    }
    if (!smaller)
        return tensor;
    kiln_tensor_free(tensor);
    return smaller;
}
