/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files, by the file's ending. */
#include "runtime/tensors/tensor_file.h"

#include "graph/base/alloc.h"
#include "graph/onnx/onnx.h"
#include "runtime/tensors/file.h"
#include "runtime/tensors/npy_texts.h"

#include <string.h>

/* --- NumPy --- */

/* NumPy's own spellings, and the names by which it knows the types of the package ml_dtypes. */
static const struct {
    const char *descr;
    KilnDType dtype;
} npy_types[] = {
    { "<f4", KILN_DTYPE_f32 },
    { "<f8", KILN_DTYPE_f64 },
    { "<f2", KILN_DTYPE_f16 },
    { "|i1", KILN_DTYPE_i8 },
    { "<i2", KILN_DTYPE_i16 },
    { "<i4", KILN_DTYPE_i32 },
    { "<i8", KILN_DTYPE_i64 },
    { "|u1", KILN_DTYPE_u8 },
    { "<u2", KILN_DTYPE_u16 },
    { "<u4", KILN_DTYPE_u32 },
    { "<u8", KILN_DTYPE_u64 },
    { "|b1", KILN_DTYPE_bool },
    { "bfloat16", KILN_DTYPE_bf16 },
    { "float8_e4m3fn", KILN_DTYPE_f8e4m3fn },
    { "float8_e4m3fnuz", KILN_DTYPE_f8e4m3fnuz },
    { "float8_e5m2", KILN_DTYPE_f8e5m2 },
    { "float8_e5m2fnuz", KILN_DTYPE_f8e5m2fnuz },
    { "float8_e8m0fnu", KILN_DTYPE_f8e8m0 },
    { "float6_e2m3fn", KILN_DTYPE_f6e2m3 },
    { "float6_e3m2fn", KILN_DTYPE_f6e3m2 },
    { "float4_e2m1fn", KILN_DTYPE_f4e2m1 },
    { "int4", KILN_DTYPE_i4 },
    { "uint4", KILN_DTYPE_u4 },
    { "int2", KILN_DTYPE_i2 },
    { "uint2", KILN_DTYPE_u2 },
};

static bool
npy_dtype(const char *header, KilnDType *out, KilnNpyTexts *texts)
{
    const char *descr = strstr(header, "'descr':");
    const char *quote = descr ? strchr(descr + 8, '\'') : NULL;
    if (quote && kiln_npy_texts_parse(quote + 1, texts)) {
        *out = KILN_DTYPE_string;
        return true;
    }
    for (size_t i = 0; quote && i < G_N_ELEMENTS(npy_types); i++) {
        size_t length = strlen(npy_types[i].descr);
        if (strncmp(quote + 1, npy_types[i].descr, length) == 0 && quote[1 + length] == '\'') {
            *out = npy_types[i].dtype;
            return true;
        }
    }
    return false;
}

static bool
npy_shape(const char *header, KilnType *type)
{
    const char *shape = strstr(header, "'shape':");
    const char *at = shape ? strchr(shape, '(') : NULL;
    type->rank = 0;
    while (at && *++at && *at != ')') {
        if (*at == ',' || *at == ' ')
            continue;
        char *end;
        int64_t dim = g_ascii_strtoll(at, &end, 10);
        if (end == at || dim < 0 || type->rank == KILN_MAX_RANK)
            return false;
        type->dims[type->rank++] = dim;
        at = end - 1;
    }
    return at && *at == ')';
}

/* The payload of a file in Fortran order, whose first index runs fastest, in C order. */
static GBytes *
from_fortran(const KilnType *type, GBytes *payload, GError **error)
{
    int64_t n = kiln_type_elements(type), index[KILN_MAX_RANK] = { 0 };
    size_t element = kiln_dtype_size(type->dtype);
    const uint8_t *from = g_bytes_get_data(payload, NULL);
    void *to;
    GBytes *made = kiln_bytes_new((size_t)n, element, &to, error);
    for (int64_t i = 0; made && i < n; i++) {
        int64_t at = 0;
        for (int d = type->rank - 1; d >= 0; d--)
            at = at * type->dims[d] + index[d];
        memcpy((uint8_t *)to + (size_t)i * element, from + (size_t)at * element, element);
        for (int d = type->rank - 1; d >= 0 && ++index[d] == type->dims[d]; d--)
            index[d] = 0;
    }
    return made;
}

/* Format versions 1 and 2: magic, two version bytes, header length (2 or 4 bytes), a Python dict
 * literal, the payload. */
static KilnTensor *
load_npy(const char *path, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    if (!bytes)
        return NULL;
    size_t size;
    const uint8_t *data = g_bytes_get_data(bytes, &size);
    if (size < 12 || memcmp(data, "\x93NUMPY", 6) != 0 || data[6] < 1 || data[6] > 2)
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "%s: expected a NumPy file of version 1 or 2", path);
    size_t start = data[6] == 1 ? 10 : 12;
    size_t length = data[8] | (size_t)data[9] << 8;
    if (data[6] == 2)
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (length > size - start)
        return kiln_throw_null(error, KILN_ERROR_FORMAT, "%s: the header is cut off", path);
    g_autofree char *header = g_strndup((const char *)data + start, length);
    KilnType type = { .dtype = KILN_DTYPE_f32 };
    KilnNpyTexts texts = { 0 };
    if (!npy_dtype(header, &type.dtype, &texts) || !npy_shape(header, &type))
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "%s: expected little-endian numbers or strings and a shape of at "
                               "most %d dims, found %s",
                               path, KILN_MAX_RANK, g_strchomp(header));
    g_autoptr(GBytes) payload =
        g_bytes_new_from_bytes(bytes, start + length, size - start - length);
    g_autoptr(KilnTensor) tensor = type.dtype == KILN_DTYPE_string
                                       ? kiln_npy_texts_load(&type, texts, payload, error)
                                       : kiln_tensor_new_data(&type, payload, error);
    if (!tensor)
        kiln_prefix_error(error, "%s: ", path);
    if (!tensor || tensor->kind == KILN_TENSOR_SPLAT || !strstr(header, "'fortran_order': True"))
        return g_steal_pointer(&tensor);
    g_autoptr(GBytes) turned = from_fortran(&type, tensor->bytes, error);
    return turned ? kiln_tensor_new_data(&type, turned, error) : NULL;
}

static gboolean
save_npy(GByteArray *out, const KilnType *type, const void *data, GError **error)
{
    const char *descr = NULL;
    g_autofree char *of_texts = NULL;
    KilnNpyTexts texts = { 0 };
    if (type->dtype == KILN_DTYPE_string) {
        if (!kiln_npy_texts_of(data, kiln_type_elements(type), &texts, error))
            return FALSE;
        descr = of_texts = g_strdup_printf("<U%zu", texts.width);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(npy_types); i++)
        descr = npy_types[i].dtype == type->dtype ? npy_types[i].descr : descr;
    if (!descr)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "NumPy has no type %s",
                          kiln_dtype_name(type->dtype));
    g_autoptr(GString) header = g_string_new(NULL);
    g_string_append_printf(header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < type->rank; i++)
        g_string_append_printf(header, "%" G_GINT64_FORMAT ",", type->dims[i]);
    g_string_append(header, "), }");
    while ((10 + header->len + 1) % 64)
        g_string_append_c(header, ' ');
    g_string_append_c(header, '\n');
    const uint8_t start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, header->len & 0xff, (uint8_t)(header->len >> 8)
    };
    g_byte_array_append(out, start, sizeof start);
    g_byte_array_append(out, (const guint8 *)header->str, header->len);
    if (type->dtype == KILN_DTYPE_string)
        kiln_npy_texts_save(data, kiln_type_elements(type), texts, out);
    else
        g_byte_array_append(out, data, (size_t)kiln_type_bytes(type));
    return TRUE;
}

/* --- bytes without a header --- */

static KilnTensor *
load_raw(const char *path, const KilnType *type, GError **error)
{
    int64_t expected = type ? kiln_type_bytes(type) : -1;
    if (expected < 0 || type->dtype == KILN_DTYPE_string)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "%s: a file without a header needs an input of numbers with a "
                               "known shape: give --shape",
                               path);
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    if (!bytes)
        return NULL;
    if (g_bytes_get_size(bytes) != (size_t)expected) {
        g_autofree char *name = kiln_type_to_string(type);
        return kiln_throw_null(error, KILN_ERROR_SHAPE,
                               "%s: expected %" G_GINT64_FORMAT " bytes of %s, found %zu", path,
                               expected, name, g_bytes_get_size(bytes));
    }
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    return kiln_tensor_new_data(&plain, bytes, error);
}

/* --- any file --- */

/* A sequence, an optional or a map. */
static KilnTensor *
load_item(const char *path, const KilnType *type, GError **error)
{
    if (!g_str_has_suffix(path, ".pb")) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw_null(error, KILN_ERROR_USAGE, "%s: expected a .pb file of %s", path,
                               text);
    }
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    g_autoptr(KilnItem) item = bytes ? kiln_onnx_item_parse(bytes, path, type, error) : NULL;
    return item ? kiln_tensor_new_item(type, item) : NULL;
}

bool
kiln_tensor_file_has_ending(const char *path)
{
    static const char *const endings[] = { ".pb", ".npy", ".raw", ".bin", ".png", ".pgm", ".ppm" };
    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        if (g_str_has_suffix(path, endings[i]))
            return true;
    }
    return false;
}

KilnTensor *
kiln_tensor_file_load(const char *path, const KilnType *type, const KilnImageOptions *image,
                      GError **error)
{
    if (type && kiln_dtype_is_item(type->dtype))
        return load_item(path, type, error);
    if (g_str_has_suffix(path, ".npy"))
        return load_npy(path, error);
    if (g_str_has_suffix(path, ".png") || g_str_has_suffix(path, ".pgm") ||
        g_str_has_suffix(path, ".ppm"))
        return kiln_image_load(path, type, image, error);
    if (g_str_has_suffix(path, ".raw") || g_str_has_suffix(path, ".bin"))
        return load_raw(path, type, error);
    if (!g_str_has_suffix(path, ".pb"))
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "%s: expected a .pb, .npy, .raw, .bin, .png, .pgm or .ppm file",
                               path);
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    return bytes ? kiln_onnx_tensor_parse(bytes, path, NULL, error) : NULL;
}

gboolean
kiln_tensor_file_encode(const char *path, const char *name, const KilnTensor *tensor,
                        GByteArray *out, GError **error)
{
    int64_t bytes = kiln_type_bytes(&tensor->type);
    if (bytes < 0 || bytes > G_MAXINT)
        return kiln_throw(error, KILN_ERROR_LIMIT, "%s: the tensor is too big for one file", path);
    if (kiln_dtype_is_item(tensor->type.dtype))
        return g_str_has_suffix(path, ".npy")
                   ? kiln_throw(error, KILN_ERROR_UNSUPPORTED, "NumPy has no type %s",
                                kiln_dtype_name(tensor->type.dtype))
                   : kiln_onnx_item_write(kiln_tensor_item(tensor), tensor->type.dtype, name, out,
                                          error);
    if (!g_str_has_suffix(path, ".npy"))
        return kiln_onnx_tensor_write(tensor, name, out, error);
    g_autoptr(GBytes) view = kiln_tensor_view(tensor, error);
    return view && save_npy(out, &tensor->type, g_bytes_get_data(view, NULL), error);
}
