/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow that is decided while compiling: branches that are taken, loops that never run, and
 * subgraphs that could not run.
 *
 * A branch whose types contradict is no error of a model: what an exporter wrote for other shapes
 * is in the branch that these shapes do not take. Such a branch is *refused*: one `unknown` node
 * that says why stands for all that was in it. Where that branch turns out to be taken, the reason
 * is the error; where the other one is, it goes with the `if`. */
#ifndef KILN_GRAPH_MODULE_FLOW_H
#define KILN_GRAPH_MODULE_FLOW_H

#include "graph/module.h"

/** The one value of all elements of @value, a constant or known integers; false: not known. */
bool kiln_value_known_flag(const KilnValue *value, bool *out);
/** The branch of the `if` @node that is taken; NULL where the condition is not known. */
KilnFunction *kiln_if_taken(const KilnNode *node);
/** Puts @branch, which the `if` @node takes, in its place. Types are inferred on the way, and the
 * error names @node and the branch. */
gboolean kiln_if_inline(KilnNode *node, const KilnFunction *branch, GError **error);

/** Has @error say in which subgraph of @node it is. */
void kiln_region_prefix_error(GError **error, const KilnNode *node, const KilnFunction *region);

/** A loop of at most @trips iterations (NULL: no limit) under @condition (NULL: none) is known to
 * have none. */
bool kiln_loop_is_idle(const KilnValue *trips, const KilnValue *condition);
/** The type of what an idle loop stacks of @type, its type otherwise: dims that are not known are
 * 0. False where the rank is not known. */
bool kiln_loop_idle_type(const KilnType *type, KilnType *out);
/** Takes an idle `loop` @node away: what it carries is as it began. Stores in @gone whether it
 * could. */
gboolean kiln_loop_skip(KilnNode *node, bool *gone, GError **error);

/** True where @error says that types do not fit, of which a subgraph that does not run is free. */
bool kiln_error_is_mismatch(const GError *error);
/** Empties @region and has it refuse to run for @reason; its @n results are of @types. */
gboolean kiln_region_refuse(KilnFunction *region, const KilnType *types, uint32_t n,
                            const char *reason, GError **error);
/** Why @region refuses to run; NULL where it does not. */
const char *kiln_region_refusal(const KilnFunction *region);

/** What holds of a value that is either of type @a or of type @b, whose element types are equal. */
KilnType kiln_type_join(const KilnType *a, const KilnType *b);

typedef gboolean (*KilnRegionVisit)(KilnFunction *region, void *data, GError **error);
/** Calls @visit, which infers types, for the subgraphs of @node. Of an `if` or `loop`, one that may
 * not run refuses to where @visit finds that types do not fit; what an `if` says of its results
 * follows from the rest. Stores in @changed whether that changed @node. */
gboolean kiln_node_visit_regions(KilnNode *node, KilnRegionVisit visit, void *data, bool *changed,
                                 GError **error);
/** kiln_node_refine() for all nodes in order, subgraphs included. */
gboolean kiln_function_refine(KilnFunction *function, GError **error);

#endif
