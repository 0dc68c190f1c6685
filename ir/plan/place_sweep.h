/* SPDX-License-Identifier: Apache-2.0 */
/* Data that the two files of the sweep through time share: place_sweep.c and place_cross.c. */
#ifndef KILN_IR_PLAN_PLACE_SWEEP_H
#define KILN_IR_PLAN_PLACE_SWEEP_H

#include "ir/plan/place_boundary.h"
#include "ir/plan/place_tree.h"

typedef struct {
    KilnOrder *order;
    double score; /* greatest is best */
    uint32_t parent;
    uint32_t groups; /* index of its first in Layer.groups */
} State;

/* The states of a section. */
typedef struct {
    GArray *states; /* State */
    GArray *groups; /* uint8_t: per state, the groups of the ends before it, then of the begins */
} Layer;

/* How an attempt searches. */
typedef struct {
    uint32_t width; /* states that a section keeps */
    bool big;       /* also tries the biggest groups (place_cross.c) */
    bool fills;     /* keeps more siblings where fewer states than the width are left */
    uint32_t wide;  /* partial states of a bucket, over the width (place_cross.c); where there are
                       more than one, no choice may use more than half of the work that is left */
    int64_t bonus;  /* of each buffer that may still begin, in the unit of freedom */
} SweepKind;

typedef struct {
    Search *search;
    KilnBoundaries *boundaries;
    KilnOrderStore current, next, scratch;
    Layer *layers; /* by section */
    const SweepKind *kind;
    uint32_t turn;
    bool by_groups; /* finds the successors of all states together (place_cross.c) */
    bool probing;   /* only asks if any state follows; keeps none */
    /* for one boundary: */
    uint32_t s;
    const KilnBoundary *boundary;
    int8_t *end_at;   /* by buffer: its index among the ends, or -1 */
    GHashTable *seen; /* hashes of orders */
    /* for one state: */
    uint32_t parent, found, found_max;
    int64_t work_max;
    uint8_t end_groups[KILN_BOUNDARY_MAX], begin_groups[KILN_BOUNDARY_MAX];
} Sweep;

/** The mask of the first @n. */
static inline uint64_t
kiln_sweep_all(uint32_t n)
{
    return n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/** Puts all members of @mask into group @group. */
static inline void
kiln_sweep_set_groups(uint8_t *groups, uint64_t mask, uint32_t group)
{
    for (; mask; mask &= mask - 1)
        groups[__builtin_ctzll(mask)] = (uint8_t)group;
}

/** The leaf of buffer @i. Buffers with the same hash are interchangeable from here on. */
KilnOrder *kiln_sweep_leaf(const Sweep *sweep, KilnOrderStore *store, uint32_t i);

/** The orders of @order in which the ends @mask of @boundary lie side by side, or NULL. */
KilnOrder *kiln_sweep_join(Sweep *sweep, const KilnBoundary *boundary, KilnOrder *order,
                           uint64_t mask);

/** Finds the possible partners of each of the ends @left in a group. Returns the end with the
 * fewest. May list a few too many, never too few. */
uint32_t kiln_sweep_mates(Sweep *sweep, const KilnOrder *order, uint64_t left, uint64_t *mates);

/** Adds the successor of state @sweep->parent by the groups of @sweep. @order is its order behind
 * the boundary. */
void kiln_sweep_add(Sweep *sweep, KilnOrder *order);

/** Finds the successors of all states @before together, group by group (place_cross.c). */
void kiln_sweep_cross(Sweep *sweep, const GArray *before);

#endif
