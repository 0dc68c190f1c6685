/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the printers of both levels share. */
#ifndef KILN_GRAPH_TEXT_PRINT_H
#define KILN_GRAPH_TEXT_PRINT_H

#include "graph/text/text.h"

enum {
    KILN_TEXT_INDENT = 2
};

static inline void
kiln_print_indent(GString *out, int indent)
{
    g_string_append_printf(out, "%*s", indent, "");
}

/** Prints `@name` or `%name`. */
void kiln_sigil_print(char sigil, const char *name, GString *out);
/** Prints ` loc("…")` if @name says more than @result does (either may be NULL). */
void kiln_loc_print(const char *name, const char *result, GString *out);
/** Prints ` {…}` with a space before it; nothing if every attribute is default. */
void kiln_attrs_print_spaced(const KilnAttrInfo *infos, uint32_t n, const void *attrs,
                             GString *out);

/** Prints `dims { … }`: the names of which something was stated; nothing where there are none. */
void kiln_dims_print(KilnDimTable *table, GString *out);
/** Prints `metadata { … }`. */
void kiln_metadata_print(const KilnMetadata *metadata, GString *out);

/** Prints metadata, declarations and constants, after the functions of either level. The module's
 * text begins at @start in @out. */
gboolean kiln_module_print_rest(const KilnModule *module, const KilnPrintOptions *options,
                                gsize start, GString *out, GError **error);

/** Prints @number, or its expression where it has one. */
void kiln_print_number(int64_t number, const KilnDim *open, GString *out);

#endif
