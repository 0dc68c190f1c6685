/* SPDX-License-Identifier: Apache-2.0 */
/* Moves nodes between functions: into a region, out of one, into another module. */
#ifndef KILN_GRAPH_MODULE_OUTLINE_H
#define KILN_GRAPH_MODULE_OUTLINE_H

#include "graph/module.h"

/** Copies @from and its subgraphs into @to before @before (NULL: at the end). @values (KilnValue*
 * to KilnValue*) maps operands; others stay the same. The results are entered there. Constants
 * become constants of @to's module; another module gets copies. @name: base of the results' names,
 * and values in subgraphs are numbered; NULL: names stay. */
KilnNode *kiln_node_copy(KilnFunction *to, const KilnNode *from, GHashTable *values,
                         KilnNode *before, const char *name, GError **error);

/** kiln_node_copy() for stand-alone nodes: a `custom_op` is copied as the nodes of its body. */
gboolean kiln_node_copy_inline(KilnFunction *to, const KilnNode *from, GHashTable *values,
                               KilnNode *before, GError **error);

/** Copies @body, which reads no outer value, as a subgraph of @module. @numbered: values are called
 * a0… and v0…, so that equal bodies give equal texts; else they keep their names. */
KilnFunction *kiln_body_copy(KilnModule *module, const KilnFunction *body, bool numbered,
                             GError **error);

/** True if the body of @node, a `vendor.graph`, has an argument per operand and reads no outer
 * value. */
bool kiln_region_is_closed(const KilnNode *node);

/** True if @function is the body of a region or `custom_op`, or is in one. The bodies of branches
 * and loops around are none. */
bool kiln_function_is_offloaded(const KilnFunction *function);

/** Replaces @node by a call of @declaration, which has its signature and body. */
gboolean kiln_node_call(KilnNode *node, const KilnDeclaration *declaration, GError **error);

/** Replaces @node, an offload node or an `if`, by the nodes of its body. A `custom_op` among them
 * is replaced as well. Readers of @node then see the types of the new values. */
gboolean kiln_node_inline(KilnNode *node, const KilnFunction *body, GError **error);

/** Replaces @node by another offload node with its name and operands, and with @op, @attrs and
 * result @types. Readers of the old results read the new ones. The caller handles readers that now
 * see another layout. */
KilnNode *kiln_node_remake_offload(KilnNode *node, KilnOp op, const void *attrs,
                                   const KilnType *types, GError **error);

/** Replaces every `vendor.graph` of @module and its subgraphs by the nodes of its body. */
gboolean kiln_module_inline_regions(KilnModule *module, GError **error);

/** kiln_module_inline_regions() for all regions, compiled or not; also removes the declarations.
 * KILN_ERROR_UNSUPPORTED if a declaration has no body. */
gboolean kiln_module_inline(KilnModule *module, GError **error);

#endif
