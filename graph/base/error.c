/* SPDX-License-Identifier: Apache-2.0 */
/* The error domain and its one-line thrower. */
#include "graph/error.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

GQuark
kiln_error_quark(void)
{
    /* Not by G_DEFINE_QUARK: it takes the name as tokens, and clang-format puts spaces in. */
    static _Atomic GQuark quark;
    GQuark known = atomic_load(&quark);
    if (!known) {
        known = g_quark_from_static_string("kiln-error-quark");
        atomic_store(&quark, known);
    }
    return known;
}

char *
kiln_error_escape(const char *text, bool lines_stay)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_new(NULL);
    for (const char *at = valid; *at; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        if (c == '\n' && lines_stay)
            g_string_append_c(out, '\n');
        else if (c == '\n' || c == '\t')
            g_string_append(out, c == '\n' ? "\\n" : "\\t");
        else if (g_unichar_iscntrl(c))
            g_string_append_printf(out, "\\x%02x", (unsigned)c);
        else
            g_string_append_len(out, at, g_utf8_next_char(at) - at);
    }
    return g_string_free(out, FALSE);
}

gboolean
kiln_throw(GError **error, KilnError code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error) {
        g_autofree char *message = g_strdup_vprintf(format, args);
        g_autofree char *printable = kiln_error_escape(message, strchr(format, '\n'));
        *error = g_error_new_literal(KILN_ERROR, (int)code, printable);
    }
    va_end(args);
    return FALSE;
}

gboolean
kiln_throw_lines(GError **error, KilnError code, const char *lines)
{
    if (error) {
        g_autofree char *printable = kiln_error_escape(lines, true);
        *error = g_error_new_literal(KILN_ERROR, (int)code, printable);
    }
    return FALSE;
}

void
kiln_prefix_error(GError **error, const char *format, ...)
{
    if (!error || !*error)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *prefix = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *printable = kiln_error_escape(prefix, false);
    g_prefix_error(error, "%s", printable);
}
