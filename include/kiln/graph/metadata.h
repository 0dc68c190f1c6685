/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a model, kept from its file to the program. The struct is public:
 * include/kiln/graph/kiln-types.h. */
#ifndef KILN_GRAPH_METADATA_H
#define KILN_GRAPH_METADATA_H

#include "graph/arena.h"
#include "graph/kiln-types.h"

#include <stdbool.h>

G_BEGIN_DECLS

/** Makes it empty: "" and 0 everywhere. */
void kiln_metadata_init(KilnMetadata *metadata);
/** Makes a deep copy in @arena. */
void kiln_metadata_copy(KilnMetadata *to, const KilnMetadata *from, KilnArena *arena);
/** True if nothing is stated except the name of the graph. */
bool kiln_metadata_is_empty(const KilnMetadata *metadata);

G_END_DECLS

#endif
