/* SPDX-License-Identifier: Apache-2.0 */
/* Prints constants with all their bits: small ones inline, generated ones as their recipe, big ones
 * in a data file, as a piece of the file that they are mapped from, or in base64. */
#include "graph/text/text.h"

#include "graph/base/alloc.h"
#include "graph/base/beside.h"
#include "graph/base/names.h"
#include "graph/base/number.h"
#include "graph/grow/reserve.h"
#include "graph/text/print.h"
#include "graph/texts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    INLINE_ELEMENTS = 64, /* at most; more go where bytes go */
    BASE64_CHUNK = 3 << 10,
};

static const KilnPrintOptions defaults;

/* --- elements --- */

/* The shortest decimal that rounds to the same 16 bits; NaNs other than the default one in hex. */
static void
print_half(uint16_t bits, bool bf16, GString *out)
{
    float value = bf16 ? kiln_bf16_to_f32(bits) : kiln_f16_to_f32(bits);
    if (isnan(value) && bits != (bf16 ? 0x7fc0 : 0x7e00)) {
        g_string_append_printf(out, "nan(0x%04x)", bits);
        return;
    }
    for (int digits = 2; digits <= 5 && isfinite(value); digits++) {
        char text[G_ASCII_DTOSTR_BUF_SIZE], format[8];
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(text, sizeof text, format, value);
        double back = g_ascii_strtod(text, NULL);
        uint16_t rounded = bf16 ? kiln_f32_to_bf16((float)back) : kiln_f64_to_f16(back);
        if (rounded == bits) {
            g_string_append(out, text);
            return;
        }
    }
    kiln_print_f32(out, value);
}

/* The same for a code of eight bits or fewer. */
static void
print_low_float(KilnDType dtype, uint8_t code, GString *out)
{
    float value = kiln_low_float_to_f32(dtype, code);
    if (!isfinite(value)) {
        uint8_t nan = kiln_low_float_from_f64(dtype, NAN, true, KILN_ROUND_UP);
        if (isnan(value) && code != nan)
            g_string_append_printf(out, "nan(0x%02x)", code);
        else
            kiln_print_f32(out, value);
        return;
    }
    for (int digits = 2; digits <= 5; digits++) {
        char text[G_ASCII_DTOSTR_BUF_SIZE], format[8];
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(text, sizeof text, format, value);
        double back = g_ascii_strtod(text, NULL);
        if (fabs(back) <= kiln_float_format(dtype)->largest &&
            kiln_low_float_from_f64(dtype, back, true, KILN_ROUND_UP) == code) {
            g_string_append(out, text);
            return;
        }
    }
    kiln_print_f32(out, value);
}

static void
print_bool(uint8_t byte, GString *out)
{
    if (byte > 1)
        g_string_append_printf(out, "%u", byte);
    else
        g_string_append(out, byte ? "true" : "false");
}

/* Prints all bits of the element. */
static void
print_element(KilnDType dtype, const void *bytes, int64_t index, GString *out)
{
    const char *at = (const char *)bytes + (size_t)index * kiln_dtype_size(dtype);
    union {
        float f;
        double d;
        uint16_t half;
        const KilnText *text;
    } element = { 0 };
    switch (dtype) {
    case KILN_DTYPE_f32:
        memcpy(&element.f, at, sizeof element.f);
        kiln_print_f32(out, element.f);
        break;
    case KILN_DTYPE_f64:
        memcpy(&element.d, at, sizeof element.d);
        kiln_print_f64(out, element.d);
        break;
    case KILN_DTYPE_f16:
    case KILN_DTYPE_bf16:
        memcpy(&element.half, at, sizeof element.half);
        print_half(element.half, dtype == KILN_DTYPE_bf16, out);
        break;
    case KILN_DTYPE_bool:
        print_bool((uint8_t)*at, out);
        break;
    case KILN_DTYPE_string:
        memcpy(&element.text, at, sizeof element.text);
        kiln_text_print(kiln_text_of(element.text), out);
        break;
    case KILN_DTYPE_u64:
        g_string_append_printf(out, "%" G_GUINT64_FORMAT,
                               (uint64_t)kiln_element_as_i64(dtype, bytes, index));
        break;
    default:
        if (kiln_dtype_is_low_float(dtype))
            print_low_float(dtype, (uint8_t)*at, out);
        else
            g_string_append_printf(out, "%" G_GINT64_FORMAT,
                                   kiln_element_as_i64(dtype, bytes, index));
        break;
    }
}

/* --- payloads --- */

static void
print_inline(KilnDType dtype, GBytes *bytes, GString *out)
{
    gsize size;
    const void *data = g_bytes_get_data(bytes, &size);
    gsize n = size / kiln_dtype_size(dtype);
    g_string_append_c(out, '[');
    for (gsize i = 0; i < n; i++) {
        g_string_append(out, i ? ", " : "");
        print_element(dtype, data, (int64_t)i, out);
    }
    g_string_append_c(out, ']');
}

static void
print_base64(GBytes *bytes, GString *out)
{
    gsize size;
    const guchar *data = g_bytes_get_data(bytes, &size);
    g_string_append(out, "base64(\"");
    /* Whole triples per chunk: only the last may need padding. */
    for (gsize at = 0; at < size; at += BASE64_CHUNK) {
        char text[(BASE64_CHUNK / 3 + 1) * 4 + 4];
        int state = 0, save = 0;
        gsize n = g_base64_encode_step(data + at, MIN(size - at, (gsize)BASE64_CHUNK), FALSE, text,
                                       &state, &save);
        n += g_base64_encode_close(FALSE, text + n, &state, &save);
        g_string_append_len(out, text, (gssize)n);
    }
    g_string_append(out, "\")");
}

static void
print_file(const char *path, int64_t offset, gsize size, GString *out)
{
    g_string_append(out, "file(");
    kiln_string_print(path, out);
    g_string_append_printf(out, ", %" G_GINT64_FORMAT ", %zu)", offset, size);
}

/* Points to the bytes of @tensor where they lie in a file below options->directory: no text may
 * name another. */
static bool
print_origin(const KilnTensor *tensor, const KilnPrintOptions *options, GString *out)
{
    if (!options->directory || !tensor->file)
        return false;
    char *path = realpath(tensor->file, NULL);
    const char *name = path ? kiln_beside_name(options->directory, path) : NULL;
    if (name)
        print_file(name, tensor->file_offset, g_bytes_get_size(tensor->bytes), out);
    free(path);
    return name != NULL;
}

/* Appends the bytes to the data file, aligned as tensors are. */
static void
print_collected(GBytes *stored, const KilnPrintOptions *options, GString *out)
{
    gsize size;
    const void *data = g_bytes_get_data(stored, &size);
    GByteArray *all = options->data;
    gsize offset = kiln_align_up(all->len);
    static const guint8 padding[KILN_ALIGNMENT];
    g_byte_array_append(all, padding, offset - all->len);
    g_byte_array_append(all, data, size);
    print_file(options->data_name, (int64_t)offset, size, out);
}

/* Strings with a zero have no spelling. */
static bool
has_zero(GBytes *elements)
{
    gsize size;
    const KilnText *const *texts = g_bytes_get_data(elements, &size);
    bool found = false;
    for (gsize i = 0; i < size / sizeof *texts && !found; i++) {
        const KilnText text = kiln_text_of(texts[i]);
        found = text.length && memchr(text.text, 0, text.length);
    }
    return found;
}

/* One string, or all of them where they are not equal. */
static gboolean
print_texts(const KilnTensor *tensor, GString *out, GError **error)
{
    g_autoptr(GBytes) elements = kiln_tensor_view(tensor, error);
    if (!elements)
        return FALSE;
    if (has_zero(elements)) {
        g_autoptr(GBytes) stored = kiln_tensor_stored(tensor, error);
        if (stored)
            print_base64(stored, out);
        return stored != NULL;
    }
    if (tensor->kind == KILN_TENSOR_SPLAT) {
        g_string_append(out, "splat(");
        print_element(tensor->type.dtype, tensor->splat, 0, out);
        g_string_append_c(out, ')');
    } else {
        print_inline(tensor->type.dtype, elements, out);
    }
    return TRUE;
}

/* Elements of fewer than 8 bits are packed where the payload is bytes. */
static gboolean
print_data(const KilnTensor *tensor, const KilnPrintOptions *options, GString *out, GError **error)
{
    KilnDType dtype = tensor->type.dtype;
    bool packed = tensor->kind == KILN_TENSOR_PACKED;
    int64_t n = packed ? kiln_type_elements(&tensor->type)
                       : kiln_tensor_storage(tensor) / (int64_t)kiln_dtype_size(dtype);
    bool is_inline = n <= INLINE_ELEMENTS;
    g_autoptr(GBytes) bytes = is_inline && packed ? kiln_tensor_view(tensor, error)
                              : is_inline         ? g_bytes_ref(tensor->bytes)
                                                  : kiln_tensor_stored(tensor, error);
    if (!bytes)
        return FALSE;
    if (is_inline)
        print_inline(dtype, bytes, out);
    else if (options->data_name)
        print_collected(bytes, options, out);
    else if (bytes != tensor->bytes || !print_origin(tensor, options, out))
        print_base64(bytes, out);
    return TRUE;
}

static void
print_double_field(const char *before, double value, GString *out)
{
    g_string_append(out, before);
    kiln_print_f64(out, value);
}

static gboolean
print_payload(const KilnTensor *tensor, const KilnPrintOptions *options, GString *out,
              GError **error)
{
    bool texts = tensor->type.dtype == KILN_DTYPE_string && kiln_tensor_is_readable(tensor);
    if (texts)
        return print_texts(tensor, out, error);
    switch (tensor->kind) {
    case KILN_TENSOR_DATA:
    case KILN_TENSOR_PACKED:
        return print_data(tensor, options, out, error);
    case KILN_TENSOR_SPLAT:
        g_string_append(out, "splat(");
        print_element(tensor->type.dtype, tensor->splat, 0, out);
        break;
    case KILN_TENSOR_NORMAL:
        g_string_append_printf(out, "random_normal(seed=%" G_GUINT64_FORMAT, tensor->seed);
        print_double_field(", std=", tensor->std, out);
        break;
    case KILN_TENSOR_UNIFORM:
        g_string_append_printf(out, "random_uniform(seed=%" G_GUINT64_FORMAT, tensor->seed);
        print_double_field(", low=", tensor->low, out);
        print_double_field(", high=", tensor->high, out);
        break;
    case KILN_TENSOR_IOTA:
        g_string_append(out, "iota");
        return TRUE;
    case KILN_TENSOR_SPARSE:
        g_string_append(out, "sparse");
        return TRUE;
    case KILN_TENSOR_EXTERN:
        g_string_append(out, "extern");
        return TRUE;
    }
    g_string_append_c(out, ')');
    return TRUE;
}

static KilnConstantForm
form_of(const KilnConstant *constant, const KilnPrintOptions *options)
{
    KilnConstantForm form = options->forms ? options->forms[constant->id] : KILN_CONSTANT_WHOLE;
    /* A program gives the bytes up that it has packed. */
    return form == KILN_CONSTANT_WHOLE && !constant->tensor ? KILN_CONSTANT_EXTERN : form;
}

gboolean
kiln_constants_print(const KilnModule *module, const KilnPrintOptions *options, GString *out,
                     GError **error)
{
    if (!module->constants->len)
        return TRUE;
    options = options ? options : &defaults;
    g_string_append(out, "constants {\n");
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        KilnConstantForm form = form_of(constant, options);
        if (form == KILN_CONSTANT_LEFT_OUT)
            continue;
        kiln_print_indent(out, KILN_TEXT_INDENT);
        kiln_sigil_print('@', constant->name, out);
        g_string_append(out, " = ");
        if (form == KILN_CONSTANT_EXTERN)
            g_string_append(out, "extern");
        else if (!print_payload(constant->tensor, options, out, error))
            return FALSE;
        g_string_append(out, " : ");
        kiln_type_print(&constant->type, out);
        g_string_append_c(out, '\n');
        if (!kiln_reserve_check_lost(error)) {
            kiln_prefix_error(error, "@%s: ", constant->name);
            return FALSE;
        }
    }
    g_string_append(out, "}\n");
    return TRUE;
}
