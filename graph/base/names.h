/* SPDX-License-Identifier: Apache-2.0 */
/* Names: comparing those of tables, and writing names and strings so that the lexer reads them
 * back. */
#ifndef KILN_GRAPH_BASE_NAMES_H
#define KILN_GRAPH_BASE_NAMES_H

#include <glib.h>
#include <stdbool.h>
#include <string.h>

/** True where the two are equal. Most rows of a table differ in the first letter: no call is made
 * for them. */
static inline bool
kiln_name_equal(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

/** True of a character of a bare name: [A-Za-z0-9_.]. */
static inline bool
kiln_is_name_char(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '.';
}
/** Where the bare name at @at ends, @end at the latest. */
static inline const char *
kiln_name_end(const char *at, const char *end)
{
    while (at < end && kiln_is_name_char(*at))
        at++;
    return at;
}

/** `name`, or `"na/me"` where a character outside [A-Za-z0-9_.] asks for quotes. */
void kiln_name_print(const char *name, GString *out);
/** A bare word where @name lexes as one, else a string: for names without a sigil. */
void kiln_word_print(const char *name, GString *out);
/** `"…"`: control characters as \xHH, and bytes that are no UTF-8, which do not read back. */
void kiln_string_print(const char *text, GString *out);

#endif
