/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a plan without gaps before anything is placed: at each boundary between two
 * sections, what ends fills the same places as what begins. */
#ifndef KILN_IR_PLAN_PLACE_BOUNDARY_H
#define KILN_IR_PLAN_PLACE_BOUNDARY_H

#include "ir/plan/place_priv.h"

/** Buffers that end, or begin, at one boundary: more are not swept. Sets of them are bit masks. */
#define KILN_BOUNDARY_MAX 64

/* Some of what ends or begins at a boundary. */
typedef struct {
    int64_t sum; /* of the sizes */
    uint64_t mask;
} KilnSubset;

typedef struct {
    uint32_t *ends, *begins; /* buffers, the biggest first */
    uint32_t n_ends, n_begins;
    KilnSubset *sums; /* of what begins: by sum, those of few before those of many; maybe not all */
    uint32_t n_sums;
    uint64_t twins;    /* of @begins: those equal to the one before */
    uint32_t complete; /* the section from which all of @ends live */
    /* All ways to part @ends so that @begins can be parted into the same sums: the masks of each,
     * then 0. None where there are too many. */
    uint64_t *partitions;
    uint32_t n_partitions;
} KilnBoundary;

/* From left to right in time, or backward. */
typedef struct {
    const Search *search;
    bool backward;
    uint32_t *first, *last; /* sections of each buffer */
    KilnBoundary *at;       /* the boundary before each section; the first has none */
    uint32_t n_sections;
    uint32_t subsets_max; /* that are listed of what begins at one boundary */
    int64_t work;
} KilnBoundaries;

/** NULL where sections have gaps, or more than KILN_BOUNDARY_MAX buffers end or begin at once. Does
 * about an eighth of @budget, or what few subsets take. */
KilnBoundaries *kiln_boundaries_new(const Search *search, bool backward, int64_t budget);

void kiln_boundaries_free(KilnBoundaries *boundaries);

/** One attempt to solve a plan without gaps, from one end of time to the other (place_sweep.c):
 * does about @budget work, which is added to search->work. Sets the offsets of search->buffers
 * where it finds some; never finds that there are none. Attempts differ by @turn. */
KilnPlacement kiln_place_sweep(Search *search, KilnBoundaries *boundaries, uint32_t turn,
                               int64_t budget);

/** The first of @boundary->sums that is not below @sum. */
uint32_t kiln_boundary_find(const KilnBoundary *boundary, int64_t sum);

#endif
