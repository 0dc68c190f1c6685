/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by the names that the text form gives them: for code that meets operators of many
 * families, seldom enough that comparing names costs nothing. A new operator does not compile them
 * again. */
#ifndef KILN_GRAPH_MODULE_BY_NAME_H
#define KILN_GRAPH_MODULE_BY_NAME_H

#include "graph/attr.h"
#include "graph/graph.h"

/** True where @node, which may be NULL, is of the operator @op. */
bool kiln_node_is(const KilnNode *node, const char *op);
/** The field of attribute @name of @node, which has it with this @kind (asserted). */
const void *kiln_attr_field(const KilnNode *node, const char *name, KilnAttrKind kind);

/** An attribute, and what it becomes. */
typedef struct {
    const char *name;
    KilnAttrKind kind;
    const void *value;
} KilnNamedAttr;
#define KILN_NAMED(kind_, name_, ...)                                                              \
    {                                                                                              \
        .name = (name_), .kind = KILN_ATTR_##kind_, .value = &(KilnC_##kind_)                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/** An operator with attributes that differ from their defaults. */
typedef struct {
    const char *op;
    KilnNamedAttr attrs[2]; /* a name of NULL ends them */
} KilnNamed;

/** A node of one result in front of @before; NULL fails. */
KilnValue *kiln_build_named(KilnNode *before, const KilnNamed *named, KilnValue *const *operands,
                            uint32_t n, GError **error);
/** The same without attributes, of one operand and an axis, or of two operands. */
KilnValue *kiln_build_along(KilnNode *before, const char *op, KilnValue *value, int64_t axis,
                            GError **error);
KilnValue *kiln_build_pair(KilnNode *before, const char *op, KilnValue *a, KilnValue *b,
                           GError **error);

#endif
