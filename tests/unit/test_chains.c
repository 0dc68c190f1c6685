/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of items: which hang together, and that a team computes each once, the big ones alone. */
#include "exec/chains.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>

TestSuite(chains);

enum {
    N = 1000,
    BUDGET = 4 << 20,
};

Test(chains, what_is_joined_hangs_together_in_order)
{
    g_autoptr(KilnChains) chains = kiln_chains_new(7);
    static const uint32_t joined[][2] = { { 5, 1 }, { 6, 3 }, { 1, 6 }, { 4, 0 }, { 3, 1 } };
    for (size_t i = 0; i < G_N_ELEMENTS(joined); i++)
        kiln_chains_join(chains, joined[i][0], joined[i][1]);
    kiln_chains_settle(chains);
    static const uint32_t begin[] = { 0, 2, 6, 7 }, items[] = { 0, 4, 1, 3, 5, 6, 2 };
    cr_assert_eq(chains->n, 3);
    cr_expect_arr_eq(chains->begin, begin, sizeof begin);
    cr_expect_arr_eq(chains->items, items, sizeof items);
}

Test(chains, nothing_is_no_chain)
{
    g_autoptr(KilnChains) chains = kiln_chains_new(0);
    kiln_chains_settle(chains);
    cr_expect_eq(chains->n, 0);
    kiln_chains_run(chains, NULL, 0, 4, NULL, NULL);
}

typedef struct {
    pthread_mutex_t lock;
    const int64_t *bytes;
    int times[N], threads[N];
    int64_t held, most;
    bool busy[4], overlap;
} Run;

static void
compute(void *data, uint32_t chain, int worker, int threads)
{
    Run *run = data;
    pthread_mutex_lock(&run->lock);
    run->overlap |= worker < 0 || worker >= 4 || run->busy[worker & 3];
    run->busy[worker & 3] = true;
    run->times[chain]++;
    run->threads[chain] = threads;
    run->held += run->bytes[chain];
    run->most = MAX(run->most, run->held);
    pthread_mutex_unlock(&run->lock);
    g_thread_yield();
    pthread_mutex_lock(&run->lock);
    run->held -= run->bytes[chain];
    run->busy[worker & 3] = false;
    pthread_mutex_unlock(&run->lock);
}

/* Chains of one item each. */
static void
run_singles(uint32_t n, const int64_t *bytes, int threads, Run *run)
{
    g_autoptr(KilnChains) chains = kiln_chains_new(n);
    kiln_chains_settle(chains);
    *run = (Run){ .lock = PTHREAD_MUTEX_INITIALIZER, .bytes = bytes };
    kiln_chains_run(chains, bytes, BUDGET, threads, compute, run);
    cr_expect_not(run->overlap, "two at a time with one number");
    for (uint32_t c = 0; c < n; c++)
        cr_expect_eq(run->times[c], 1, "chain %u: %d times", c, run->times[c]);
}

/* With 4 threads a share is 1 MB: what needs more has all threads for itself. */
Test(chains, a_share_each_and_big_ones_alone)
{
    int64_t bytes[N];
    Run run;
    for (int c = 0; c < N; c++)
        bytes[c] = c % 100 == 7 ? 3 << 20 : (c % 10) << 17;
    run_singles(N, bytes, 4, &run);
    cr_expect_leq(run.most, BUDGET);
    for (int c = 0; c < N; c++)
        cr_expect_eq(run.threads[c], bytes[c] > BUDGET / 4 ? 4 : 1);
}

Test(chains, no_team_for_too_little)
{
    int64_t bytes[N] = { 0 };
    Run run;
    run_singles(20, bytes, 4, &run); /* small and few */
    cr_expect_eq(run.threads[0], 4, "the thread that calls computes it");
    for (int c = 0; c < 3; c++)
        bytes[c] = 1 << 20;
    run_singles(3, bytes, 4, &run); /* fewer than threads */
    cr_expect_eq(run.threads[0], 4);
    run_singles(N, bytes, 1, &run);
    cr_expect_eq(run.threads[0], 1);
}
