/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as JSON, for scripts; types and element values are spelled as in the text form. */
#ifndef KILN_GRAPH_TEXT_JSON_H
#define KILN_GRAPH_TEXT_JSON_H

#include "graph/module.h"

#include <json-glib/json-glib.h>

enum {
    KILN_JSON_SCHEMA_VERSION = 1
};

/** Appends {schema_version, functions[{name, arguments[], nodes[{op, name, operands[], results[],
 * attrs{}}], results[]}], constants[]}. Subgraphs are functions among the attributes of their node;
 * an absent operand is null. Always true: what a graph can hold, JSON can. */
gboolean kiln_module_json(const KilnModule *module, GString *out);

/* --- pieces that the IR level shares --- */

/** A string value; what is no UTF-8 in it is replaced. */
void kiln_json_string(JsonBuilder *builder, const char *name, const char *value);
void kiln_json_type(JsonBuilder *builder, const char *name, const KilnType *type);
/** A number, or one of the strings "nan", "inf", "-inf", which JSON has no numbers for. */
void kiln_json_float(JsonBuilder *builder, double value);
/** `name: {attribute: value, …}` of what is not default. */
void kiln_json_attrs(JsonBuilder *builder, const KilnAttrInfo *infos, uint32_t n,
                     const void *attrs);
/** `constants: [{name, type}, …]` */
void kiln_json_constants(JsonBuilder *builder, const KilnModule *module);
/** Ends the document: appends it to @out with a newline, and frees @builder. */
void kiln_json_finish(JsonBuilder *builder, GString *out);

#endif
