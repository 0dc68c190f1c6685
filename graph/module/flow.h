/* SPDX-License-Identifier: Apache-2.0 */
/* Decides control flow at compile time: branches that are taken, loops that never run, and
 * subgraphs that cannot run.
 *
 * A branch whose types contradict is no error of a model: exporters write branches for other
 * shapes, and these shapes do not take them. Such a branch is *refused*: one `unknown` node with
 * the reason replaces its nodes. If that branch is taken after all, the reason is the error. If the
 * other branch is taken, it goes with the `if`. */
#ifndef KILN_GRAPH_MODULE_FLOW_H
#define KILN_GRAPH_MODULE_FLOW_H

#include "graph/module.h"

/** True for `if`, `loop` and `scan`. */
bool kiln_op_is_flow(KilnOp op);
/** True for the result of an `if` whose branches give values of several ranks. */
bool kiln_value_has_ranks(const KilnValue *value);
/** The list `dims` of @node; NULL where it is no such node. */
KilnStrings *kiln_flow_dims(const KilnNode *node);
/** True where the list has @name, which may be NULL. */
bool kiln_flow_is_listed(const KilnNode *node, const char *name);
/** How many operands of @node, a `loop` or `scan`, are not carried and come first, and how many are
 * carried. */
void kiln_flow_carried(const KilnNode *node, uint32_t *out_first, uint32_t *out_n);
/** The common value of all elements of @value, a constant or known integers. False: not known. */
bool kiln_value_known_flag(const KilnValue *value, bool *out);
/** The branch of the `if` @node that is taken; NULL if the condition is not known. */
KilnFunction *kiln_if_taken(const KilnNode *node);
/** Replaces the `if` @node by its taken @branch. Infers types; an error names @node and the branch.
 */
gboolean kiln_if_inline(KilnNode *node, const KilnFunction *branch, GError **error);

/** Prefixes @error with the subgraph @region of @node. */
void kiln_region_prefix_error(GError **error, const KilnNode *node, const KilnFunction *region);

/** The reason that @region refuses to run; NULL if it does not. */
const char *kiln_region_refusal(const KilnFunction *region);
/** The function of the module that @function is a subgraph of; itself where it is none. */
const KilnFunction *kiln_function_root(const KilnFunction *function);

/** True if a loop of at most @trips iterations (NULL: no limit) under @condition (NULL: none) is
 * known to have none. */
bool kiln_loop_is_idle(const KilnValue *trips, const KilnValue *condition);
/** The type of a stacked result @type of an idle loop: dim 0 and unknown dims are 0. False if the
 * rank is not known. */
bool kiln_loop_idle_type(const KilnType *type, KilnType *out);
/** Removes an idle `loop` @node: its carried values keep their first values. @gone tells if it
 * could. */
gboolean kiln_loop_skip(KilnNode *node, bool *gone, GError **error);

/** True if @error says that types do not fit. A subgraph that does not run may have such errors. */
bool kiln_error_is_mismatch(const GError *error);
/** Empties @region and makes it refuse to run for @reason. Its @n results have @types. */
gboolean kiln_region_refuse(KilnFunction *region, const KilnType *types, uint32_t n,
                            const char *reason, GError **error);

/** The common type of a value of type @a or @b. Their element types are equal. Contents that are
 * new lie in @arena. */
KilnType kiln_type_join(KilnArena *arena, const KilnType *a, const KilnType *b);

typedef gboolean (*KilnRegionVisit)(KilnFunction *region, void *data, GError **error);
/** Calls @visit, which infers types, for the subgraphs of @node. A branch of an `if` or body of a
 * `loop` that may not run is refused if @visit finds that types do not fit. The other branches give
 * the result types of an `if`. @changed tells if @node changed. */
gboolean kiln_node_visit_regions(KilnNode *node, KilnRegionVisit visit, void *data, bool *changed,
                                 GError **error);
/** Calls kiln_node_refine() for all nodes in order, subgraphs included. */
gboolean kiln_function_refine(KilnFunction *function, GError **error);

#endif
