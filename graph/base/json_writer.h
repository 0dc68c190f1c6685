/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON documents, value by value. Types are spelled as in the text form. */
#ifndef KILN_GRAPH_BASE_JSON_WRITER_H
#define KILN_GRAPH_BASE_JSON_WRITER_H

#include "graph/type.h"

/** A document that is being written. Begin with `{ .out = text, .pretty = … }`, and write one
 * object. */
typedef struct {
    GString *out;
    bool pretty; /* each value has a line of its own */
    bool filled; /* the object or array that is open has a value */
    unsigned depth;
} KilnJson;

/* @key names a member of the object that is open. It is NULL for an element of an array, and for
 * the document itself. */

void kiln_json_object(KilnJson *json, const char *key);
void kiln_json_end_object(KilnJson *json);
void kiln_json_array(KilnJson *json, const char *key);
void kiln_json_end_array(KilnJson *json);
/** Adds a string, or null for NULL. U+FFFD replaces bytes that are not UTF-8. Control characters
 * are escaped. */
void kiln_json_string(KilnJson *json, const char *key, const char *value);
/** The same of @length bytes, of which some may be zero. */
void kiln_json_text(KilnJson *json, const char *key, const char *value, size_t length);
void kiln_json_int(KilnJson *json, const char *key, int64_t value);
/** Adds the shortest decimal that reads back to @value, or null: JSON has no NaN or infinity. */
void kiln_json_number(KilnJson *json, const char *key, double value);
void kiln_json_bool(KilnJson *json, const char *key, bool value);
void kiln_json_null(KilnJson *json, const char *key);
/** Adds the text of @type. */
void kiln_json_type(KilnJson *json, const char *key, const KilnType *type);

#endif
