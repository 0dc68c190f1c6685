/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of sequences: how many elements they have, and which value is at a position. Looks
 * through insertions and erasures that certainly succeed, down to where the sequence is made. */
#ifndef KILN_PASSES_QUERY_SEQUENCES_H
#define KILN_PASSES_QUERY_SEQUENCES_H

#include "graph/graph.h"
#include "passes/query/movement.h"

/** An element: a value, or a part of what is split. */
typedef struct {
    KilnValue *value; /* NULL: @part */
    KilnPart part;
    bool drops; /* the part lacks the axis */
} KilnElement;

/** A position; the last element is 1 from the end. */
typedef struct {
    bool from_end;
    int64_t at;
} KilnPosition;

/** The number that @value, a position, is known to be. */
bool kiln_position_known(const KilnValue *value, int64_t *out);
/** The length of @sequence; -1 where it is not known, or where a run may fail to make it. It has
 * *@out_least elements or more (NULL: not asked). */
int64_t kiln_sequence_length(KilnValue *sequence, int64_t *out_least);
/** Finds element @at of @sequence, below 0 counted from the end. Where the element is not known,
 * @out->value and @out->part.source are NULL, and it is at *@out_rest in *@out_sequence, which is
 * @sequence itself where nothing could be looked through. False where the position is known to be
 * out of range. */
bool kiln_sequence_find(KilnValue *sequence, int64_t at, KilnElement *out, KilnValue **out_sequence,
                        KilnPosition *out_rest);
/** The `split_to_sequence` that makes @sequence; NULL where something else does. */
const KilnNode *kiln_sequence_split(KilnValue *sequence);
/** The axis that @split, a `split_to_sequence`, cuts; -1: not known. *@out_drops: parts lack it. */
int kiln_split_axis(const KilnNode *split, bool *out_drops);
/** True where the lengths of the parts certainly fit, and there is one part or more. */
bool kiln_split_is_certain(const KilnNode *split);

#endif
