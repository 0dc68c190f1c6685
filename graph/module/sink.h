/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of an `if` that move into it. Where a run picks a branch and the branches give values of
 * different ranks, what reads them has no type. A copy of the reader in each branch has one:
 *
 *     y = if(c) then { a }          a: f32[4]           z = if(c) then { exp(a) }
 *               else { b }          b: f32[2,3]   =>              else { exp(b) }
 *     z = exp(y)                    y: f32[*]
 *
 * It goes on so, reader by reader, up to values of one rank. The same holds of shapes that are
 * lists of different lengths. */
#ifndef KILN_GRAPH_MODULE_SINK_H
#define KILN_GRAPH_MODULE_SINK_H

#include "graph/module.h"

/** Infers the types of @copy, which is in a branch, or behind it the original itself. It may put
 * others in its place. */
typedef gboolean (*KilnSinkSettle)(KilnNode *copy, const KilnNode *original, void *data,
                                   GError **error);

/** True where readers of @value, a result of an `if`, cannot be typed around it. */
bool kiln_if_hides_rank(const KilnValue *value);
/** Moves @node, a later node of the same function, into both branches of @owner, an `if`. What lies
 * on the way from @owner to @node moves, too. The `if` that replaces @owner, behind @node; NULL and
 * @error where it fails. */
KilnNode *kiln_if_sink(KilnNode *owner, KilnNode *node, KilnSinkSettle settle, void *data,
                       GError **error);

#endif
