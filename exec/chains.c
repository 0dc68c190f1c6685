/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/chains.h"

#include "exec/team.h"
#include "graph/base/budget.h"

enum {
    WORTH_ITEMS = 256,     /* a team starts in less time than as many small kernels take, */
    WORTH_BYTES = 1 << 20, /* or than as many bytes are written in */
};

KilnChains *
kiln_chains_new(uint32_t n_items)
{
    KilnChains *chains = g_new0(KilnChains, 1);
    chains->n_items = n_items;
    chains->parent = g_new(uint32_t, (gsize)n_items + 1);
    for (uint32_t i = 0; i < n_items; i++)
        chains->parent[i] = i;
    return chains;
}

void
kiln_chains_free(KilnChains *chains)
{
    if (!chains)
        return;
    g_free(chains->begin);
    g_free(chains->items);
    g_free(chains->parent);
    g_free(chains);
}

/* --- which items hang together --- */

static uint32_t
root_of(KilnChains *chains, uint32_t item)
{
    uint32_t *parent = chains->parent;
    for (; parent[item] != item; item = parent[item])
        parent[item] = parent[parent[item]];
    return item;
}

/* The first item of a chain is its root. */
void
kiln_chains_join(KilnChains *chains, uint32_t a, uint32_t b)
{
    a = root_of(chains, a);
    b = root_of(chains, b);
    chains->parent[MAX(a, b)] = MIN(a, b);
}

void
kiln_chains_settle(KilnChains *chains)
{
    uint32_t n = chains->n_items;
    g_autofree uint32_t *chain_of = g_new(uint32_t, (gsize)n + 1);
    chains->begin = g_new0(uint32_t, (gsize)n + 2);
    chains->items = g_new(uint32_t, (gsize)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t root = root_of(chains, i);
        chain_of[i] = root == i ? chains->n++ : chain_of[root];
        chains->begin[chain_of[i] + 2]++; /* how many, for now, one further up */
    }
    for (uint32_t c = 2; c <= chains->n; c++)
        chains->begin[c] += chains->begin[c - 1];
    for (uint32_t i = 0; i < n; i++)
        chains->items[chains->begin[chain_of[i] + 1]++] = i;
    g_clear_pointer(&chains->parent, g_free);
}

/* --- running them --- */

/* Chains that are computed beside each other, in @out; 0 where none are. */
static uint32_t
find_shared(const KilnChains *chains, const int64_t *bytes, int64_t budget, int threads,
            uint32_t *out)
{
    uint32_t n = 0;
    int64_t n_items = 0, n_bytes = 0;
    for (uint32_t c = 0; c < chains->n; c++) {
        if (bytes[c] > budget / threads)
            continue;
        out[n++] = c;
        n_items += chains->begin[c + 1] - chains->begin[c];
        n_bytes += MIN(bytes[c], (int64_t)WORTH_BYTES);
    }
    bool worth = n_items >= WORTH_ITEMS || n_bytes >= WORTH_BYTES;
    return threads > 1 && n >= (uint32_t)threads && worth ? n : 0;
}

typedef struct {
    const uint32_t *chains;
    KilnChainFn run;
    void *data;
    KilnBudget *budget; /* of the caller, which its threads are held to */
} Shared;

static void
run_shared(const void *data, int64_t task, int member)
{
    const Shared *shared = data;
    KilnBudget *before = kiln_budget_enter(shared->budget);
    shared->run(shared->data, shared->chains[task], member, 1);
    kiln_budget_leave(before);
}

void
kiln_chains_run(const KilnChains *chains, const int64_t *bytes, int64_t budget, int threads,
                KilnChainFn run, void *data)
{
    threads = MAX(threads, 1);
    g_autofree uint32_t *shared = g_new(uint32_t, (gsize)chains->n + 1);
    const uint32_t n = find_shared(chains, bytes, budget, threads, shared);
    for (uint32_t c = 0, next = 0; c < chains->n; c++) {
        if (next < n && shared[next] == c)
            next++;
        else
            run(data, c, 0, threads);
    }
    const Shared job = { shared, run, data, kiln_budget_current() };
    kiln_team_tasks(n, threads, run_shared, &job);
}
