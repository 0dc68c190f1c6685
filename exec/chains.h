/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed in an order, item after item, where some items read what others made. Items that
 * hang together are a chain; chains read nothing of each other, so that each thread of a team may
 * take one. */
#ifndef KILN_EXEC_CHAINS_H
#define KILN_EXEC_CHAINS_H

#include <glib.h>
#include <stdint.h>

enum {
    KILN_CHAINS_SPARE = 10, /* one part in so many of what is left at the end may be held besides */
};

typedef struct {
    uint32_t n_items;
    uint32_t n;       /* chains, in the order of their first items */
    uint32_t *begin;  /* n + 1: where the items of each begin */
    uint32_t *items;  /* chain after chain, in order within each */
    uint32_t *parent; /* by item, while they are joined */
} KilnChains;

/** @n_items items, of which none reads another yet. */
KilnChains *kiln_chains_new(uint32_t n_items);
void kiln_chains_free(KilnChains *chains);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnChains, kiln_chains_free)

/** Items @a and @b are of one chain. */
void kiln_chains_join(KilnChains *chains, uint32_t a, uint32_t b);
/** Nothing is joined from here on: finds the chains. Linear. */
void kiln_chains_settle(KilnChains *chains);

/** Computes a chain with @threads threads for its kernels. @worker, below the size of the team, is
 * another's at the same time never: for memory that calls after each other may share. */
typedef void (*KilnChainFn)(void *data, uint32_t chain, int worker, int threads);

/** Calls @run once for every chain, on a team of @threads. @bytes: what each chain holds at most;
 * all that are under way hold @budget bytes at most, or as many as the biggest one: a chain that
 * needs more than its thread's share of @budget is computed alone, its kernels on all threads. So
 * are all where there are fewer chains than threads, or too little to do for a team. */
void kiln_chains_run(const KilnChains *chains, const int64_t *bytes, int64_t budget, int threads,
                     KilnChainFn run, void *data);

#endif
