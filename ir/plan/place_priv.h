/* SPDX-License-Identifier: Apache-2.0 */
/* Data that the three searches for exact placement share. */
#ifndef KILN_IR_PLAN_PLACE_PRIV_H
#define KILN_IR_PLAN_PLACE_PRIV_H

#include "ir/plan/place.h"

typedef struct {
    KilnLife *life;
    int64_t size;
    uint32_t first, last; /* sections, both included */
    uint32_t rank;        /* among equal offsets */
    int64_t lowest;       /* its lowest possible offset above the placed buffers */
    int64_t offset;
    bool placed;
    uint32_t neighbours, n_neighbours; /* buffers that live at the same time: a range of a list */
} Buffer;

/* One effect of placing @by. */
typedef struct {
    uint32_t buffer, by;
    int64_t lowest;
} Undo;

/* The lower bound of a section: its unplaced buffers need @rest bytes above @floor, the lowest
 * offset of any of them. */
typedef struct {
    int64_t rest, floor;
    uint32_t lowest; /* a buffer with that offset */
    uint32_t first_member, n_members;
    double failures; /* of attempts of place_fill.c here */
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
    uint32_t *members; /* of all sections, one after the other */
    GArray *trail;     /* uint32_t: placed buffers, in order */
    GArray *undo, *floor_undo;
    int64_t capacity;
    int64_t work, budget;
    double failure; /* weight of the next failure: grows with time */
} Search;

/** The end of the first group of @members, from @begin on, that are connected in time. @members are
 * in order of their first section. *out_last is the last section of the group. */
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

/** Tries once to fill valley after valley, with no buffer placed at first (place_fill.c). Does
 * about @budget work and adds it to search->work. Sets the offsets of search->buffers on success.
 * Attempts differ by @turn. */
KilnPlacement kiln_place_fill(Search *search, uint32_t turn, int64_t budget);

/** kiln_place_within() with attempts to fill valleys only. */
KilnPlacement kiln_place_by_filling(KilnLife *lives, uint32_t n, int64_t capacity, int64_t *work);

/** A number in [0.5, 1.5), uniform over attempts and buffers. */
double kiln_place_disturbance(uint32_t turn, uint32_t buffer);

#endif
