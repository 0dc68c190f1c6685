/* SPDX-License-Identifier: Apache-2.0 */
/* Parses YAML text into a small tree. Aliases are resolved, sizes and depths bounded, and nodes
 * have positions. Some forms that the parser library accepts are errors in a pipeline. */
#ifndef KILN_PASSES_PIPELINE_YAML_WALK_H
#define KILN_PASSES_PIPELINE_YAML_WALK_H

#include "graph/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_YAML_MAX_NODES = 10000, /* with aliases expanded, over all included files */
    KILN_YAML_MAX_DEPTH = 32,
    KILN_YAML_MAX_BYTES = 1 << 20,
};

typedef enum {
    KILN_YAML_SCALAR,
    KILN_YAML_SEQUENCE,
    KILN_YAML_MAPPING,
} KilnYamlKind;

/** An aliased node is shared, not copied. Its position is that of the original. */
typedef struct KilnYaml KilnYaml;
struct KilnYaml {
    KilnYamlKind kind;
    int line, column; /* counted from 1 */
    const char *text; /* SCALAR; "" if nothing is written */
    bool quoted;      /* SCALAR: in quotes or a block, so always a string */
    uint32_t n;
    KilnYaml **items; /* SEQUENCE: elements; MAPPING: values */
    KilnYaml **keys;  /* MAPPING: scalars, all different */
    uint32_t size;    /* nodes with aliases expanded */
    uint32_t depth;
};

/** Parses the one document of @text into @arena. @budget: nodes that are left, reduced by those
 * read. Errors are KILN_ERROR_PIPELINE, one "name:line:column: message" a line. */
KilnYaml *kiln_yaml_parse(KilnArena *arena, const char *text, size_t length, const char *name,
                          uint32_t *budget, GError **error);
/** The value of @key in a mapping; NULL if there is none. */
KilnYaml *kiln_yaml_get(const KilnYaml *mapping, const char *key);
/** True for an empty scalar: nothing, `~` or `null` without quotes. */
bool kiln_yaml_is_null(const KilnYaml *node);
/** "a mapping", "a list", "nothing" or "'text'", for messages. Valid as long as the tree. */
const char *kiln_yaml_describe(const KilnYaml *node, KilnArena *arena);

#endif
