/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of items for a team of threads. Items have an order, and some items read the results of
 * earlier ones. Items that depend on each other form a chain. Chains do not depend on each other,
 * so each thread may take one. */
#ifndef KILN_EXEC_CHAINS_H
#define KILN_EXEC_CHAINS_H

#include <glib.h>
#include <stdint.h>

enum {
    KILN_CHAINS_SPARE = 10, /* a caller may hold 1/10 of the final results in addition */
};

typedef struct {
    uint32_t n_items;
    uint32_t n;       /* chains, in the order of their first items */
    uint32_t *begin;  /* n + 1: where the items of each chain begin */
    uint32_t *items;  /* chain after chain, in order within each */
    uint32_t *parent; /* by item; only until chains settle */
} KilnChains;

/** Starts with @n_items items that do not depend on each other. */
KilnChains *kiln_chains_new(uint32_t n_items);
void kiln_chains_free(KilnChains *chains);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnChains, kiln_chains_free)

/** Puts items @a and @b into one chain. */
void kiln_chains_join(KilnChains *chains, uint32_t a, uint32_t b);
/** Finds the chains, in linear time. No item may be joined afterwards. */
void kiln_chains_settle(KilnChains *chains);

/** Computes a chain; its kernels use @threads threads. @worker is below the size of the team. Calls
 * with the same @worker never overlap, so they may share memory. */
typedef void (*KilnChainFn)(void *data, uint32_t chain, int worker, int threads);

/** Calls @run once for every chain, on a team of @threads. Chain c holds at most @bytes[c]. All
 * chains under way hold at most @budget bytes, or as much as the largest chain. A chain above its
 * thread's share of @budget runs alone, its kernels on all threads. So do all chains if they are
 * fewer than @threads, or too little work for a team. */
void kiln_chains_run(const KilnChains *chains, const int64_t *bytes, int64_t budget, int threads,
                     KilnChainFn run, void *data);

#endif
