/* SPDX-License-Identifier: Apache-2.0 */
/* The error domain and its one-line thrower. */
#include "graph/error.h"

#include <stdarg.h>

G_DEFINE_QUARK(kiln - error - quark, kiln_error)

gboolean
kiln_throw(GError **error, KilnError code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error) {
        g_autofree char *message = g_strdup_vprintf(format, args);
        g_autofree char *valid = g_utf8_make_valid(message, -1);
        *error = g_error_new_literal(KILN_ERROR, (int)code, valid);
    }
    va_end(args);
    return FALSE;
}

const char *
kiln_error_sentence(KilnError code)
{
    static const char *const sentences[] = {
#define X(id, sentence) [KILN_ERROR_##id] = sentence,
        KILN_ERROR_MAP(X)
#undef X
    };
    return (unsigned)code < KILN_N_ERRORS ? sentences[code] : "unknown error";
}
