/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a loop carries and whose rank changes. The loop carries their elements and their
 * shape instead, which are lists. A branch for each rank makes a tensor of both:
 *
 *     y = loop(n, x) body(i, a) {               p, q = loop(n, flat(x), shape(x)) body(i, f, s) {
 *       b = unsqueeze(a)                          a = if(rank(s) < 2) { reshape(f, s) : [d0] }
 *       return b                          =>                     else { reshape(f, s) : [d0,d1] }
 *     }                                           b = unsqueeze(a)
 *                                                 return flat(b), shape(b)
 *                                               }
 *                                               y = if(rank(q) < 2) { reshape(p, q) } else { … }
 *
 * What reads such a tensor moves into the branches (graph/module/sink.h). */
#ifndef KILN_GRAPH_MODULE_LOOP_RANKS_H
#define KILN_GRAPH_MODULE_LOOP_RANKS_H

#include "graph/graph.h"
#include "graph/module/flow.h"
#include "graph/module/sink.h"

/** How the types of what replaces a loop are found. */
typedef struct {
    KilnSinkSettle settle; /* of a node around it */
    KilnRegionVisit visit; /* of its body */
    void *data;            /* of both */
} KilnRankSettle;

/** Replaces @node, a `loop` that kiln_loop_settle() refused. @ranks has a bit for each rank that
 * was found, for each carried value, and changes. False without an error where ranks are not why.
 */
gboolean kiln_loop_spread_ranks(KilnNode *node, int32_t *ranks, const KilnRankSettle *settle,
                                GError **error);

#endif
