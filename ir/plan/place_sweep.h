/* SPDX-License-Identifier: Apache-2.0 */
/* What both files of the sweep through time share: place_sweep.c and place_cross.c. */
#ifndef KILN_IR_PLAN_PLACE_SWEEP_H
#define KILN_IR_PLAN_PLACE_SWEEP_H

#include "ir/plan/place_boundary.h"
#include "ir/plan/place_tree.h"

typedef struct {
    KilnOrder *order;
    double score; /* greatest is best */
    uint32_t parent;
    uint32_t groups; /* where they begin in Layer.groups */
} State;

/* The states of a section. */
typedef struct {
    GArray *states; /* State */
    GArray *groups; /* uint8_t: of each state, those of what ends before it, and of what begins */
} Layer;

typedef struct {
    Search *search;
    KilnBoundaries *boundaries;
    KilnOrderStore current, next, scratch;
    Layer *layers; /* of the sections */
    uint32_t turn, width, next_min;
    bool shares;    /* budgets between choices */
    bool by_groups; /* states that follow from all are found together (place_cross.c) */
    bool probing;   /* whether any state follows: none is kept */
    /* What follows is of one boundary. */
    uint32_t s;
    const KilnBoundary *boundary;
    int8_t *end_at;   /* of each buffer: its place among the ends, or -1 */
    GHashTable *seen; /* hashes of orders */
    /* And this of one state. */
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

/** Puts all of @mask into group @group. */
static inline void
kiln_sweep_set_groups(uint8_t *groups, uint64_t mask, uint32_t group)
{
    for (; mask; mask &= mask - 1)
        groups[__builtin_ctzll(mask)] = (uint8_t)group;
}

/** Buffers of the same hash can be exchanged in all that follows. */
KilnOrder *kiln_sweep_leaf(const Sweep *sweep, KilnOrderStore *store, uint32_t i);

/** The orders of @order in which the ends @mask of @boundary lie side by side, or NULL. */
KilnOrder *kiln_sweep_join(Sweep *sweep, const KilnBoundary *boundary, KilnOrder *order,
                           uint64_t mask);

/** Finds with which others each of the ends @left may be in one group. Returns the end that the
 * fewest may join. Seldom says too much, never too little. */
uint32_t kiln_sweep_mates(Sweep *sweep, const KilnOrder *order, uint64_t left, uint64_t *mates);

/** Adds the state that the groups of @sweep lead to, from state @sweep->parent: @order is that
 * behind the boundary. */
void kiln_sweep_add(Sweep *sweep, KilnOrder *order);

/** Finds states that follow from all of @before at once, group by group (place_cross.c). */
void kiln_sweep_cross(Sweep *sweep, const GArray *before);

#endif
