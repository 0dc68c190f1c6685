/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of RE2's syntax, for matches of UTF-8.
 *
 * A pattern becomes a list of steps, which a match walks for all ways at once: its time is at most
 * the product of both lengths, whatever the pattern. So there are no back-references and no
 * look-around. Groups count for their structure alone. */
#ifndef KILN_GRAPH_BASE_REGEX_H
#define KILN_GRAPH_BASE_REGEX_H

#include "graph/kiln-types.h"

#include <stdbool.h>

G_BEGIN_DECLS

enum {
    KILN_REGEX_STEPS = 100000, /* no pattern becomes more */
};

/** A pattern in one block without addresses, which may be copied to others. */
typedef struct KilnRegex KilnRegex;

/** Fails with KILN_ERROR_INVALID, and says where @pattern is wrong, or KILN_ERROR_LIMIT. */
KilnRegex *kiln_regex_compile(const char *pattern, GError **error);
void kiln_regex_free(KilnRegex *regex);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnRegex, kiln_regex_free)
/** The bytes of the block. */
size_t kiln_regex_bytes(const KilnRegex *regex);
/** The bytes of memory, aligned to 8, that a match needs beside it. */
size_t kiln_regex_scratch(const KilnRegex *regex);
/** True if @regex matches the whole of @text, which is UTF-8. */
bool kiln_regex_matches(const KilnRegex *regex, KilnText text, void *scratch);
/** Finds the first match in @text from byte @from on, and the longest one that begins there. A
 * begin of the text is a begin of the whole @text. Its time is at most the product of both lengths.
 */
bool kiln_regex_find(const KilnRegex *regex, KilnText text, size_t from, KilnText *out,
                     void *scratch);

G_END_DECLS

#endif
