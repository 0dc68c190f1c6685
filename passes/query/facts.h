/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the numbers of a value from the nodes that compute it. */
#ifndef KILN_PASSES_QUERY_FACTS_H
#define KILN_PASSES_QUERY_FACTS_H

#include "graph/module.h"

/** True where no element of @value is less than 0: relu returns it as it is. -0 and NaN may be
 * among them. Looks at a few nodes above @value only. */
bool kiln_never_negative(const KilnValue *value);

/** As above, and no element is -0 either: abs returns it as it is. */
bool kiln_never_signed(const KilnValue *value);

#endif
