/* SPDX-License-Identifier: Apache-2.0 */
/* Moving nodes between functions: into a region, out of one, into another module. */
#ifndef KILN_GRAPH_MODULE_OUTLINE_H
#define KILN_GRAPH_MODULE_OUTLINE_H

#include "graph/module.h"

/** A copy of @from and its subgraphs in @to before @before (NULL: at the
 * end). Operands are what @values (KilnValue* to KilnValue*) says, or the same where it says
 * nothing; the results are entered there. Constants become those of @to's module, copied where it
 * is another one. @name: base of the results' names, and in subgraphs values are numbered; NULL: as
 * they are. */
KilnNode *kiln_node_copy(KilnFunction *to, const KilnNode *from, GHashTable *values,
                         KilnNode *before, const char *name, GError **error);

/** The same as nodes that stand by themselves: of a `custom_op` those of its body. */
gboolean kiln_node_copy_inline(KilnFunction *to, const KilnNode *from, GHashTable *values,
                               KilnNode *before, GError **error);

/** A copy of @body, which reads nothing around it, as a subgraph of @module. @numbered: values are
 * called a0… and v0…, so that equal bodies become equal texts; else as they were. */
KilnFunction *kiln_body_copy(KilnModule *module, const KilnFunction *body, bool numbered,
                             GError **error);

/** True where the body of @node, a `vendor.graph`, has an argument per operand and reads nothing
 * around it. */
bool kiln_region_is_closed(const KilnNode *node);

/** Calls what @declaration declares in the place of @node, which has its signature and body. */
gboolean kiln_node_call(KilnNode *node, const KilnDeclaration *declaration, GError **error);

/** Puts the nodes of @node's body in the place of @node, an offload node or an `if`: those of a
 * `custom_op` in it stand in its place, too. The types of what they compute are those that readers
 * of @node see then. */
gboolean kiln_node_inline(KilnNode *node, const KilnFunction *body, GError **error);

/** Makes another offload node of @node, which goes: with its name and operands, of operator @op
 * with @attrs and results of @types, which what read the old ones reads. Those who read another
 * layout than before are the caller's to see to. */
KilnNode *kiln_node_remake_offload(KilnNode *node, KilnOp op, const void *attrs,
                                   const KilnType *types, GError **error);

/** Puts the nodes of every `vendor.graph` of @module and its subgraphs in its place. */
gboolean kiln_module_inline_regions(KilnModule *module, GError **error);

/** The same for every region, compiled or not, and forgets the declarations.
 * KILN_ERROR_UNSUPPORTED where a declaration has no body. */
gboolean kiln_module_inline(KilnModule *module, GError **error);

#endif
