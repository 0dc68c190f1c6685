/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/metadata.h"

#include <string.h>

void
kiln_metadata_init(KilnMetadata *metadata)
{
    *metadata = (KilnMetadata){ .graph_name = "" };
#define X(field, number) metadata->field = "";
    KILN_METADATA_TEXTS(X)
#undef X
}

void
kiln_metadata_copy(KilnMetadata *to, const KilnMetadata *from, KilnArena *arena)
{
    *to = *from;
    to->graph_name = kiln_arena_strdup(arena, from->graph_name);
#define X(field, number) to->field = kiln_arena_strdup(arena, from->field);
    KILN_METADATA_TEXTS(X)
#undef X
    KilnOpset *opsets = kiln_arena_new0(arena, KilnOpset, from->n_opsets);
    for (unsigned i = 0; i < from->n_opsets; i++) {
        opsets[i] = from->opsets[i];
        opsets[i].domain = kiln_arena_strdup(arena, opsets[i].domain);
    }
    KilnProperty *properties = kiln_arena_new0(arena, KilnProperty, from->n_properties);
    for (unsigned i = 0; i < from->n_properties; i++)
        properties[i] = (KilnProperty){ kiln_arena_strdup(arena, from->properties[i].key),
                                        kiln_arena_strdup(arena, from->properties[i].value) };
    to->opsets = opsets;
    to->properties = properties;
}

bool
kiln_metadata_is_empty(const KilnMetadata *metadata)
{
#define X(field, number) &&!*metadata->field
    bool no_text = true KILN_METADATA_TEXTS(X);
#undef X
#define X(field, number) &&!metadata->field
    bool no_number = true KILN_METADATA_NUMBERS(X);
#undef X
    return no_text && no_number && !metadata->n_opsets && !metadata->n_properties;
}

const char *
kiln_metadata_property(const KilnMetadata *metadata, const char *key)
{
    for (unsigned i = metadata->n_properties; i > 0; i--) {
        if (strcmp(metadata->properties[i - 1].key, key) == 0)
            return metadata->properties[i - 1].value;
    }
    return NULL;
}
