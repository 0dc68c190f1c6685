/* SPDX-License-Identifier: Apache-2.0 */
/* What a model says of itself, kept from its file to the program. The struct is public:
 * include/kiln/graph/kiln-types.h. */
#ifndef KILN_GRAPH_METADATA_H
#define KILN_GRAPH_METADATA_H

#include "graph/arena.h"
#include "graph/kiln-types.h"

#include <stdbool.h>

G_BEGIN_DECLS

/** Where nothing is said. */
void kiln_metadata_init(KilnMetadata *metadata);
/** A deep copy, in @arena. */
void kiln_metadata_copy(KilnMetadata *to, const KilnMetadata *from, KilnArena *arena);
/** True where nothing is said but the name of the graph. */
bool kiln_metadata_is_empty(const KilnMetadata *metadata);

G_END_DECLS

#endif
