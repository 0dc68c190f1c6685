/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: one domain, codes from KILN_ERROR_MAP, one line to fail. */
#ifndef KILN_GRAPH_ERROR_H
#define KILN_GRAPH_ERROR_H

#include "graph/kiln-types.h"

#include <stdbool.h>

G_BEGIN_DECLS

/** Sets @error and returns FALSE, so that a failure is one line: `return kiln_throw(error, …)`. The
 * message is UTF-8. Control characters in quoted bytes are escaped. Newlines of @format itself
 * stay. */
gboolean kiln_throw(GError **error, KilnError code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/** The same with a message of several lines: newlines of @lines stay. */
gboolean kiln_throw_lines(GError **error, KilnError code, const char *lines);

/** Puts a text in front of the message of *@error, if there is one. Escapes it as kiln_throw()
 * does. */
void kiln_prefix_error(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** The same as kiln_throw() for functions that return a pointer. */
#define kiln_throw_null(...) (kiln_throw(__VA_ARGS__), NULL)

/** A copy of @text in UTF-8, with each control character as \\n, \\t or \\xHH. Invalid bytes become
 * U+FFFD. @lines_stay keeps newlines. The caller frees it with g_free(). */
char *kiln_error_escape(const char *text, bool lines_stay);

G_END_DECLS

#endif
