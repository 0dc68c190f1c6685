/* SPDX-License-Identifier: Apache-2.0 */
/* Moving operators into a region that is left to a vendor. */
#ifndef KILN_PASSES_OFFLOAD_OFFLOAD_OUTLINE_H
#define KILN_PASSES_OFFLOAD_OFFLOAD_OUTLINE_H

#include "graph/module.h"

/** Makes `vendor.graph @callee` at the end of @function, behind all that @members (KilnNode*, each
 * behind what it reads) read outside, and moves them into its body. What they read is captured,
 * weights too; what is read outside becomes a result. Literals that an operator takes in place of
 * an attribute (axes, bounds of a clip) are copied. NULL and an error where a node cannot be made.
 */
KilnNode *kiln_offload_outline(KilnFunction *function, const GPtrArray *members, const char *callee,
                               GError **error);

/** An argument of @body that stands for @value, which is around it: constant where that is; entered
 * in @values (KilnValue* around to KilnValue* inside) and @captured (KilnValue*). NULL with an
 * error. */
KilnValue *kiln_offload_capture(KilnFunction *body, KilnValue *value, GHashTable *values,
                                GPtrArray *captured, GError **error);

/** Behind the greatest number N that a node of @op, `vendor.graph` or `custom_op`, has in @module
 * in its name, @prefix and N. */
uint32_t kiln_offload_next_number(const KilnModule *module, KilnOp op, char prefix);

#endif
