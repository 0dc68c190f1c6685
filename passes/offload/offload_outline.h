/* SPDX-License-Identifier: Apache-2.0 */
/* Moves operators into a region for a vendor. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_OUTLINE_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_OUTLINE_H

#include "graph/module.h"

/** Makes `vendor.graph @callee` at the end of @function, behind the outside values that @members
 * read, and moves them into its body. @members are KilnNode*, each behind its operands. Outside
 * operands are captured, also weights. Values that outside nodes read become results. Literals in
 * place of an attribute (axes, bounds of a clip) are copied. NULL and an error if a node cannot be
 * made. */
KilnNode *kiln_offload_outline(KilnFunction *function, const GPtrArray *members, const char *callee,
                               GError **error);

/** Makes an argument of @body for the outside @value, constant if that is a literal. Enters it in
 * @values (outside KilnValue* to inside KilnValue*) and @captured (KilnValue*). NULL with an error.
 */
KilnValue *kiln_offload_capture(KilnFunction *body, KilnValue *value, GHashTable *values,
                                GPtrArray *captured, GError **error);

/** The next free number in names of nodes of @op, `vendor.graph` or `custom_op`, in @module: one
 * more than the greatest N of a name that is @prefix and N. */
uint32_t kiln_offload_next_number(const KilnModule *module, KilnOp op, char prefix);

#endif
