/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tensors/npy_texts.h"

#include "graph/error.h"
#include "graph/texts.h"

#include <string.h>

enum {
    WIDEST = 1 << 24, /* characters: more are no strings */
    WIDE = 4          /* bytes of a character */
};

bool
kiln_npy_texts_parse(const char *descr, KilnNpyTexts *out)
{
    char *end;
    bool wide = strncmp(descr, "<U", 2) == 0;
    if (!wide && strncmp(descr, "|S", 2) != 0)
        return false;
    guint64 width = g_ascii_strtoull(descr + 2, &end, 10);
    if (end == descr + 2 || *end != '\'' || width > WIDEST)
        return false;
    *out = (KilnNpyTexts){ wide, (size_t)width };
    return true;
}

static uint32_t
character_at(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Appends the element at @from. Zeros at its end are none of it. */
static gboolean
append(const uint8_t *from, KilnNpyTexts texts, GString *out, GError **error)
{
    size_t n = texts.width, unit = texts.wide ? WIDE : 1;
    while (n && (texts.wide ? character_at(from + (n - 1) * unit) : from[n - 1]) == 0)
        n--;
    if (!texts.wide) {
        g_string_append_len(out, (const char *)from, (gssize)n);
        return TRUE;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t c = character_at(from + i * unit);
        if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return kiln_throw(error, KILN_ERROR_FORMAT, "expected characters, found 0x%x", c);
        char bytes[6];
        g_string_append_len(out, bytes, g_unichar_to_utf8(c, bytes));
    }
    return TRUE;
}

KilnTensor *
kiln_npy_texts_load(const KilnType *type, KilnNpyTexts texts, GBytes *payload, GError **error)
{
    int64_t n = kiln_type_elements(type);
    size_t size, bytes = texts.width * (texts.wide ? WIDE : 1);
    const uint8_t *from = g_bytes_get_data(payload, &size);
    if (n < 0 || (bytes && (size % bytes || size / bytes != (size_t)n)) || (!bytes && size))
        return kiln_throw_null(
            error, KILN_ERROR_SHAPE,
            "expected %" G_GINT64_FORMAT " strings of %zu bytes, found %zu bytes", n, bytes, size);
    if (!bytes) /* all are empty */
        return kiln_tensor_new_splat(type, 0);
    g_autoptr(GString) all = g_string_new(NULL);
    g_autofree gsize *ends = g_new(gsize, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++) {
        if (!append(from + (size_t)i * bytes, texts, all, error))
            return NULL;
        ends[i] = all->len;
    }
    g_autofree KilnText *elements = g_new(KilnText, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++) {
        gsize begin = i ? ends[i - 1] : 0;
        elements[i] = (KilnText){ all->str + begin, ends[i] - begin };
    }
    return kiln_tensor_new_texts(type, elements, (size_t)n, error);
}

gboolean
kiln_npy_texts_of(const KilnText *const *elements, int64_t n, KilnNpyTexts *out, GError **error)
{
    KilnNpyTexts texts = { true, 1 }; /* NumPy has none of width 0 in a file */
    for (int64_t i = 0; i < n; i++) {
        const KilnText text = kiln_text_of(elements[i]);
        size_t width = 0;
        if (text.length && !text.text[text.length - 1])
            return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                              "NumPy has no strings that end with a zero byte, as element "
                              "%" G_GINT64_FORMAT " does: a .pb file holds it",
                              i);
        for (size_t k = 0; k < text.length; k++)
            width += ((uint8_t)text.text[k] & 0xC0) != 0x80;
        texts.width = MAX(texts.width, width);
    }
    *out = texts;
    return TRUE;
}

void
kiln_npy_texts_save(const KilnText *const *elements, int64_t n, KilnNpyTexts texts, GByteArray *out)
{
    for (int64_t i = 0; i < n; i++) {
        const KilnText text = kiln_text_of(elements[i]);
        const char *at = text.text, *end = at + text.length;
        for (size_t k = 0; k < texts.width; k++) {
            const uint32_t c = at < end ? g_utf8_get_char(at) : 0;
            const uint8_t bytes[WIDE] = { (uint8_t)c, (uint8_t)(c >> 8), (uint8_t)(c >> 16), 0 };
            g_byte_array_append(out, bytes, sizeof bytes);
            at = at < end ? g_utf8_next_char(at) : at;
        }
    }
}
