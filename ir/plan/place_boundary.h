/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a plan without gaps before its buffers are placed. At each boundary between two
 * sections, the buffers that begin fill the space of the buffers that end. */
#ifndef KILN_IR_PLAN_PLACE_BOUNDARY_H
#define KILN_IR_PLAN_PLACE_BOUNDARY_H

#include "ir/plan/place.h"
#include "ir/plan/place_priv.h"

/** A sweep allows so many ends, and so many begins, at one boundary. Bit masks are sets of them. */
#define KILN_BOUNDARY_MAX 64

/* A subset of the buffers that end or begin at a boundary. */
typedef struct {
    int64_t sum; /* of the sizes */
    uint64_t mask;
} KilnSubset;

typedef struct {
    uint32_t *ends, *begins; /* buffers, the largest first */
    uint32_t n_ends, n_begins;
    KilnSubset *sums; /* subsets of @begins, by sum, small sets first; may be incomplete */
    uint32_t n_sums;
    uint64_t twins;    /* of @begins: those equal to the previous one */
    uint32_t complete; /* all of @ends live from this section on */
    /* Ways to split @ends such that @begins splits into the same sums: the masks of each way, then
     * 0. None if there are too many. */
    uint64_t *partitions;
    uint32_t n_partitions;
} KilnBoundary;

/* All boundaries, in the order of time or backward. */
typedef struct {
    const Search *search;
    bool backward;
    uint32_t *first, *last; /* sections of each buffer */
    KilnBoundary *at;       /* the boundary before each section; the first has none */
    uint32_t n_sections;
    uint32_t subsets_max; /* most subsets listed per boundary */
    int64_t work;
} KilnBoundaries;

/** NULL if sections have gaps, or if more than KILN_BOUNDARY_MAX buffers end or begin at once. Does
 * about an eighth of @budget as work, or enough for a few subsets. */
KilnBoundaries *kiln_boundaries_new(const Search *search, bool backward, int64_t budget);

void kiln_boundaries_free(KilnBoundaries *boundaries);

/** Tries once to solve a plan without gaps, from one end of time to the other (place_sweep.c). Does
 * about @budget work and adds it to search->work. Sets the offsets of search->buffers on success.
 * Never proves that there are none. Attempts differ by @turn. */
KilnPlacement kiln_place_sweep(Search *search, KilnBoundaries *boundaries, uint32_t turn,
                               int64_t budget);

/** The index of the first of @boundary->sums that is not below @sum. */
uint32_t kiln_boundary_find(const KilnBoundary *boundary, int64_t sum);

#endif
