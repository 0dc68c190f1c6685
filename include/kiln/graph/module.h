/* SPDX-License-Identifier: Apache-2.0 */
/* Modules own functions, constants and declarations. Functions own arguments and the names of
 * values. function.h has the calls that need nodes. */
#ifndef KILN_GRAPH_MODULE_H
#define KILN_GRAPH_MODULE_H

#include "graph/graph.h"

G_BEGIN_DECLS

KilnModule *kiln_module_new(void);
/** An empty module that shares the table of dims with @other, so that types may be copied. */
KilnModule *kiln_module_new_beside(const KilnModule *other);
void kiln_module_free(KilnModule *module);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnModule, kiln_module_free)
/** A deep copy that shares tensor bytes. */
KilnModule *kiln_module_clone(const KilnModule *module);

/** Adds a note about the file of @module: a line without a newline. */
void kiln_module_add_note(KilnModule *module, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Moves nodes, results and operands to new memory in list order, if more than half of the nodes
 * made were removed. Numbers nodes as kiln_function_renumber() does. Keeps the old memory for new
 * nodes until kiln_module_trim(). Returns whether it moved: old pointers to nodes, their values and
 * uses are invalid then. Takes linear time. */
bool kiln_module_compact(KilnModule *module);
/** Frees the memory that kiln_module_compact() kept. */
void kiln_module_trim(KilnModule *module);

KilnFunction *kiln_function_new(KilnModule *module, const char *name);
/** A subgraph: a function outside the module's list. Its nodes may read values around it. */
KilnFunction *kiln_function_new_region(KilnModule *module, const char *name);
KilnFunction *kiln_module_find_function(const KilnModule *module, const char *name);
/** NULL where nothing of that name is declared. */
KilnDeclaration *kiln_module_find_declaration(const KilnModule *module, const char *name);
/** Declares @name, which must be free, with the signature of @body, which it takes over. */
KilnDeclaration *kiln_module_declare(KilnModule *module, const char *name, KilnFunction *body);
/** Forgets the declarations that are not marked in @keep (one flag per declaration). */
void kiln_module_keep_declarations(KilnModule *module, const bool *keep);

/** Adds a constant and takes @tensor over; @name is made unique. @type NULL: the tensor's own. */
KilnConstant *kiln_module_add_constant(KilnModule *module, const char *name, KilnTensor *tensor,
                                       const KilnType *type);
KilnConstant *kiln_module_find_constant(const KilnModule *module, const char *name);
/** Forgets the constants whose id is marked in @remove (one flag per constant) and renumbers the
 * rest. No `const` node or attribute may refer to a removed one. */
void kiln_module_remove_constants(KilnModule *module, const bool *remove);

/** Says that anything may have changed in @function: for changes without the functions below. */
void kiln_function_touch(KilnFunction *function);
/** Adds an argument; NULL and an error where the name is taken. */
KilnArgument *kiln_function_add_argument(KilnFunction *function, const char *name,
                                         const KilnType *type, GError **error);
/** Keeps only the arguments in @kept, a subset in any order, and takes their order. Nothing may
 * read the others. */
void kiln_function_keep_arguments(KilnFunction *function, KilnArgument *const *kept, uint32_t n);
/** A name derived from @base that no value of the function has; interned in the module's arena. */
const char *kiln_function_unique_name(KilnFunction *function, const char *base);
/** Lets @function find @value by its name. Every maker of values ends with this. */
void kiln_function_enter_name(KilnFunction *function, KilnValue *value);
/** Renames values of a subgraph, nested ones included, that share a name with a value around it.
 * Call it when the subgraph's node is made: before that, nothing is around it. */
void kiln_function_settle_names(KilnFunction *region);
/** The value of that name in the function (not around it); NULL if there is none. */
KilnValue *kiln_function_find_value(const KilnFunction *function, const char *name);
/** Renames; @name must be free. */
void kiln_value_rename(KilnFunction *function, KilnValue *value, const char *name);
/** Checks everything that must hold of a module or function: unique names, def before use, arity,
 * attribute ranges, use lists, stored types equal to inferred ones, named outputs. Linear. */
gboolean kiln_module_verify(const KilnModule *module, GError **error);
gboolean kiln_function_verify(const KilnFunction *function, GError **error);
/** The same where an earlier call found @function valid. Looks only at parts that functions of
 * graph/ touched since, and at nodes that read or define them. Looks at all the first time, where
 * anything may have changed, and where the module has subgraphs. */
gboolean kiln_function_verify_changes(KilnFunction *function, GError **error);

G_END_DECLS

#endif
