/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/base/names.h"

void
kiln_string_print(const char *text, GString *out)
{
    kiln_text_print((KilnText){ text, strlen(text) }, out);
}

void
kiln_text_print(KilnText text, GString *out)
{
    const char *end = text.text + text.length;
    g_string_append_c(out, '"');
    for (const char *at = text.text; at < end;) {
        unsigned char c = (unsigned char)*at;
        if (c >= 0x80 && (gint32)g_utf8_get_char_validated(at, end - at) >= 0) {
            const char *next = g_utf8_next_char(at);
            g_string_append_len(out, at, next - at);
            at = next;
            continue;
        }
        if (c == '"' || c == '\\')
            g_string_append_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\r' || c == '\t')
            g_string_append(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if (c < 0x20 || c >= 0x7f)
            g_string_append_printf(out, "\\x%02x", c);
        else
            g_string_append_c(out, (char)c);
        at++;
    }
    g_string_append_c(out, '"');
}

void
kiln_name_print(const char *name, GString *out)
{
    const char *end = name + strlen(name);
    if (name < end && kiln_name_end(name, end) == end)
        g_string_append(out, name);
    else
        kiln_string_print(name, out);
}

void
kiln_word_print(const char *name, GString *out)
{
    if (g_ascii_isalpha(*name) || *name == '_')
        kiln_name_print(name, out);
    else
        kiln_string_print(name, out);
}
