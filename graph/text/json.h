/* SPDX-License-Identifier: Apache-2.0 */
/* Writes graphs as JSON, for scripts, and draws them for Graphviz. Types and element values of JSON
 * are spelled as in the text form. */
#ifndef KILN_GRAPH_TEXT_JSON_H
#define KILN_GRAPH_TEXT_JSON_H

#include "graph/module.h"

#include <json-glib/json-glib.h>

enum {
    KILN_JSON_SCHEMA_VERSION = 1
};

/** Appends {schema_version, functions[{name, arguments[], nodes[{op, name, operands[], results[],
 * attrs{}}], results[]}], constants[]}. Subgraphs are functions among the attributes of their node.
 * An absent operand is null. Always TRUE: JSON can hold every graph. */
gboolean kiln_module_json(const KilnModule *module, GString *out);

/* --- pieces that the IR level shares --- */

/** Adds a string. Bytes that are not UTF-8 are replaced. */
void kiln_json_string(JsonBuilder *builder, const char *name, const char *value);
void kiln_json_type(JsonBuilder *builder, const char *name, const KilnType *type);
/** Adds a number, or one of the strings "nan", "inf", "-inf", because JSON lacks these numbers. */
void kiln_json_float(JsonBuilder *builder, double value);
/** Adds `name: {attribute: value, …}` with the attributes that are not default. */
void kiln_json_attrs(JsonBuilder *builder, const KilnAttrInfo *infos, uint32_t n,
                     const void *attrs);
/** Adds `constants: [{name, type}, …]`. */
void kiln_json_constants(JsonBuilder *builder, const KilnModule *module);
/** Ends the document: appends it to @out with a newline, and frees @builder. */
void kiln_json_finish(JsonBuilder *builder, GString *out);

/** Appends a `digraph`: a cluster per function and subgraph, a box per node with its operator, name
 * and result types, and an edge per read. */
void kiln_module_dot(const KilnModule *module, GString *out);

#endif
