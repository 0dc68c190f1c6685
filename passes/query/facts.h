/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a value: about its numbers, from the nodes that compute it, and about its readers. */
#ifndef KILN_PASSES_QUERY_FACTS_H
#define KILN_PASSES_QUERY_FACTS_H

#include "graph/module.h"

/** True if no element of @value is less than 0: relu returns it unchanged. -0 and NaN are possible.
 * Looks at a few nodes above @value only. */
bool kiln_never_negative(const KilnValue *value);

/** True if also no element is -0: abs returns it unchanged. */
bool kiln_never_signed(const KilnValue *value);

/** True if nothing but @node reads @value, however often. */
bool kiln_only_reader(const KilnValue *value, const KilnNode *node);

#endif
