/* SPDX-License-Identifier: Apache-2.0 */
/* Compares names of tables. Prints names and strings so that the lexer reads them back. */
#ifndef KILN_GRAPH_BASE_NAMES_H
#define KILN_GRAPH_BASE_NAMES_H

#include "graph/kiln-types.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

/** True if both are equal. Most rows of a table differ in the first letter and cost no call. */
static inline bool
kiln_name_equal(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

/** True for the characters of a bare name: [A-Za-z0-9_.]. */
static inline bool
kiln_is_name_char(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '.';
}
/** The end of the bare name at @at, but not behind @end. */
static inline const char *
kiln_name_end(const char *at, const char *end)
{
    while (at < end && kiln_is_name_char(*at))
        at++;
    return at;
}

/** Prints `name`, or `"na/me"` if a character outside [A-Za-z0-9_.] needs quotes. */
void kiln_name_print(const char *name, GString *out);
/** Prints a name without a sigil: bare if the lexer reads it as one word, else as a string. */
void kiln_word_print(const char *name, GString *out);
/** Prints `"…"` with \xHH for control characters and for bytes that are no UTF-8. The latter do not
 * read back. */
void kiln_string_print(const char *text, GString *out);
/** The same of a text with a length. */
void kiln_text_print(KilnText text, GString *out);

#endif
