/* SPDX-License-Identifier: Apache-2.0 */
/* Writes graphs as JSON, for scripts, and draws them for Graphviz. Types and element values of JSON
 * are spelled as in the text form. */
#ifndef KILN_GRAPH_TEXT_JSON_H
#define KILN_GRAPH_TEXT_JSON_H

#include "graph/base/json_writer.h"
#include "graph/module.h"

enum {
    KILN_JSON_SCHEMA_VERSION = 1
};

/** Appends {schema_version, functions[{name, arguments[], nodes[{op, name, operands[], results[],
 * attrs{}}], results[]}], constants[]}. Subgraphs are functions among the attributes of their node.
 * An absent operand is null. */
void kiln_module_json(const KilnModule *module, GString *out);

/* --- pieces that the IR level shares --- */

/** Adds a number, or one of the strings "nan", "inf", "-inf", because JSON lacks these numbers. */
void kiln_json_float(KilnJson *json, const char *key, double value);
/** Adds `name: {attribute: value, …}` with the attributes that are not default. */
void kiln_json_attrs(KilnJson *json, const KilnAttrInfo *infos, uint32_t n, const void *attrs);
/** Adds `constants: [{name, type}, …]`. */
void kiln_json_constants(KilnJson *json, const KilnModule *module);

/** Appends a `digraph`: a cluster per function and subgraph, a box per node with its operator, name
 * and result types, and an edge per read. */
void kiln_module_dot(const KilnModule *module, GString *out);

#endif
