/* SPDX-License-Identifier: Apache-2.0 */
/* What the three searches for exact placement share. */
#ifndef KILN_IR_PLAN_PLACE_PRIV_H
#define KILN_IR_PLAN_PLACE_PRIV_H

#include "ir/plan/place.h"

typedef struct {
    KilnLife *life;
    int64_t size;
    uint32_t first, last; /* sections, both included */
    uint32_t rank;        /* among equal offsets */
    int64_t lowest;       /* where it may lie above what is placed */
    int64_t offset;
    bool placed;
    uint32_t neighbours, n_neighbours; /* buffers that live at the same time: a range of a list */
} Buffer;

/* What placing @by changed. */
typedef struct {
    uint32_t buffer, by;
    int64_t lowest;
} Undo;

/* What the unplaced buffers of a section need, at least: @rest bytes, from where the lowest of them
 * may lie. */
typedef struct {
    int64_t rest, floor;
    uint32_t lowest; /* a buffer that may lie there */
    uint32_t first_member, n_members;
    double failures; /* that attempts of place_fill.c had here */
} Section;

/* A floor that a placement raised. */
typedef struct {
    uint32_t section, by, lowest;
    int64_t floor;
} FloorUndo;

typedef struct {
    Buffer *buffers;
    uint32_t n, n_sections;
    uint32_t *neighbours;
    Section *sections;
    uint32_t *members; /* of the sections, one after the other */
    GArray *trail;     /* uint32_t: what is placed, in order */
    GArray *undo, *floor_undo;
    int64_t capacity;
    int64_t work, budget;
    double failure; /* what one more counts: late ones more than early ones */
} Search;

/** Where @members, from @begin on, stop to reach across each other in time: they are in order of
 * their first section. *out_last is the last section of those in front. */
static inline uint32_t
kiln_place_reach(const Buffer *buffers, const uint32_t *members, uint32_t begin, uint32_t n,
                 uint32_t *out_last)
{
    uint32_t end = begin + 1;
    *out_last = buffers[members[begin]].last;
    for (; end < n && buffers[members[end]].first <= *out_last; end++)
        *out_last = MAX(*out_last, buffers[members[end]].last);
    return end;
}

/** One attempt to fill valley after valley, from nothing placed (place_fill.c): does about
 * @budget work, which is added to search->work. Sets the offsets of search->buffers where it finds
 * some. Attempts differ by @turn. */
KilnPlacement kiln_place_fill(Search *search, uint32_t turn, int64_t budget);

/** As kiln_place_within(), by attempts to fill valleys alone. */
KilnPlacement kiln_place_by_filling(KilnLife *lives, uint32_t n, int64_t capacity, int64_t *work);

/** Uniform in [0.5, 1.5), from the attempt and the buffer. */
double kiln_place_disturbance(uint32_t turn, uint32_t buffer);

#endif
