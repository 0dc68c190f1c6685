/* SPDX-License-Identifier: Apache-2.0 */
/* Types of branches and loops that a run decides. A dim that may change from one iteration to the
 * next, or from one branch to the other, gets a name.
 *
 *     %y = loop(%n, %go, %x) body(%i, %c, %a: f32[k, 4]) {     %x: f32[1, 4], %y: f32[m, 4]
 *       %b = concat(%a, %row) : f32[k + 1, 4]                  k: of each iteration
 *       return %c, %b                                          m: of the result
 *     }
 *
 * Names of arguments get their numbers when an iteration begins. Dims of arguments that begin equal
 * and change alike share a name. Names of results are listed in the attribute `dims` of the node,
 * which defines them (graph/module/define.h). */
#ifndef KILN_GRAPH_MODULE_FLOW_TYPES_H
#define KILN_GRAPH_MODULE_FLOW_TYPES_H

#include "graph/graph.h"
#include "graph/module/flow.h"

enum {
    KILN_RANKS_UNKNOWN = -1
};

/** A bit for each rank that @value may have, where branches of an `if` differ. @of_shape: for each
 * rank of what has the shape @value; none where that is passed on from the last iteration.
 * KILN_RANKS_UNKNOWN where nobody knows. */
int32_t kiln_flow_ranks(const KilnValue *value, bool of_shape);
/** True where the body of @node, a `loop` or `scan`, never ends it early. */
bool kiln_loop_counts(const KilnNode *node);
/** True where the condition that the body of @node, a `loop`, returns may end it. ONNX ignores it
 * where the loop has no first condition. */
bool kiln_loop_asks(const KilnNode *node);
/** Finds the types of the arguments of @node, a `loop` or `scan`, then visits its body with @visit,
 * which infers types, as kiln_node_visit_regions() does, and gives @node the types of its results.
 * KILN_ERROR_UNSUPPORTED where a carried value changes its rank: then @out_ranks, an element for
 * each carried value, has a bit for each rank that was found. KILN_ERROR_TYPE where one changes its
 * element type. */
gboolean kiln_loop_settle(KilnNode *node, KilnRegionVisit visit, void *data, int32_t *out_ranks,
                          GError **error);
/** How often the body of @node, a `loop` or `scan`, runs; NULL: a run decides. It runs *@out_most
 * times at most. */
const KilnDim *kiln_loop_trips(const KilnNode *node, int64_t *out_most);
/** True where the body of @node, a `loop` or `scan`, certainly runs once or more. */
bool kiln_loop_runs(const KilnNode *node);
/** True where all dims of @type, of a value in the body of @node, are known and the same in each
 * iteration and around @node. */
bool kiln_loop_fixes_type(const KilnNode *node, const KilnType *type);
/** Gives names to the dims in which the branches of @node, an `if`, differ. A result whose ranks
 * differ has none. Types of branches are inferred. KILN_ERROR_UNSUPPORTED where there are too many.
 */
gboolean kiln_if_settle(KilnNode *node, GError **error);
/** The same for results from @first on, which are new. Those before keep their names. */
gboolean kiln_if_settle_from(KilnNode *node, uint32_t first, GError **error);

#endif
