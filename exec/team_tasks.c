/* SPDX-License-Identifier: Apache-2.0 */
/* Work in parts that the members of a team claim. */
#include "exec/team.h"
#include "exec/wait.h"

/* --- one round --- */

/* Tasks next … end - 1 are left of a share; a cache line for each. */
typedef struct {
    alignas(64) _Atomic int64_t next;
    int64_t end;
} Share;

typedef struct {
    Share shares[KILN_TEAM_SHARES];
    int n_shares;
    KilnTeamTask task;
    const void *data;
} Tasks;

static void
do_tasks(void *data, int member)
{
    Tasks *tasks = data;
    for (int i = 0; i < tasks->n_shares; i++) {
        Share *share = &tasks->shares[(member + i) % tasks->n_shares];
        while (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end) {
            int64_t task = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
            if (task < share->end)
                tasks->task(tasks->data, task, member);
        }
    }
}

void
kiln_team_tasks(int64_t n, int members, KilnTeamTask task, const void *data)
{
    if (members > n)
        members = (int)n;
    if (members <= 1) {
        for (int64_t i = 0; i < n; i++)
            task(data, i, 0);
        return;
    }
    Tasks tasks = { .n_shares = members < KILN_TEAM_SHARES ? members : KILN_TEAM_SHARES,
                    .task = task,
                    .data = data };
    for (int i = 0; i < tasks.n_shares; i++) {
        atomic_init(&tasks.shares[i].next, n * i / tasks.n_shares);
        tasks.shares[i].end = n * (i + 1) / tasks.n_shares;
    }
    kiln_team_run(members, do_tasks, &tasks);
}

/* --- many --- */

/* The round in the upper half, tasks of the share that are claimed in the lower. Of a round before
 * the present one all are done: whoever claims first in a round begins it. */
typedef struct {
    alignas(64) _Atomic uint64_t claimed;
} RoundShare;

typedef struct {
    const KilnTeamRounds *rounds;
    RoundShare shares[KILN_TEAM_SHARES];
    int n_shares;
    alignas(64) _Atomic int64_t done; /* tasks of the round */
    KilnWord round;
} Rounds;

/* All but an eighth of what is left of a share of @n tasks, in @out_begin … @out_end - 1; false
 * where nothing is left, or the round is over. */
static bool
claim(RoundShare *share, unsigned round, int64_t n, int64_t *out_begin, int64_t *out_end)
{
    uint64_t found = atomic_load_explicit(&share->claimed, memory_order_relaxed), claimed;
    do {
        *out_begin = found >> 32 == round ? (int64_t)(uint32_t)found : 0;
        if (found >> 32 > round || *out_begin >= n)
            return false;
        *out_end = n - (n - *out_begin) / 8;
        claimed = ((uint64_t)round << 32) + (uint64_t)*out_end;
    } while (!atomic_compare_exchange_weak_explicit(&share->claimed, &found, claimed,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Tasks of share @s that this member did. */
static int64_t
do_share(Rounds *all, unsigned round, int64_t n, int s, int member)
{
    const KilnTeamRounds *rounds = all->rounds;
    bool backwards = rounds->backwards(rounds->data, round);
    int64_t first = n * s / all->n_shares, last = n * (s + 1) / all->n_shares - 1;
    int64_t done = 0, i, end;
    while (claim(&all->shares[s], round, last + 1 - first, &i, &end)) {
        done += end - i;
        rounds->run(rounds->data, round, backwards ? last - i : first + i, backwards ? -1 : 1,
                    end - i, member);
    }
    return done;
}

/* True where they were the last of the round: then this member begins the next. */
static bool
count_done(Rounds *all, unsigned round, int64_t n, int64_t done)
{
    if (done == 0 || atomic_fetch_add_explicit(&all->done, done, memory_order_acq_rel) + done < n)
        return false;
    atomic_store_explicit(&all->done, 0, memory_order_relaxed);
    kiln_word_set(&all->round, round + 1);
    return true;
}

/* A member looks at the shares of others only if its own was not the last. Then it waits for those
 * that hold a task, and for nobody else. */
static void
do_rounds(void *data, int member)
{
    Rounds *all = data;
    for (unsigned round = kiln_word_get(&all->round); round < all->rounds->n;) {
        int64_t n = all->rounds->tasks(all->rounds->data, round);
        bool over = false;
        for (int i = 0; !over && i < all->n_shares; i++) {
            int share = (member + i) % all->n_shares;
            over = count_done(all, round, n, do_share(all, round, n, share, member));
        }
        round = over ? round + 1 : kiln_word_await(&all->round, round);
    }
}

void
kiln_team_rounds(const KilnTeamRounds *rounds, int members)
{
    if (members <= 1) {
        for (unsigned round = 0; round < rounds->n; round++) {
            int64_t n = rounds->tasks(rounds->data, round);
            bool backwards = rounds->backwards(rounds->data, round);
            rounds->run(rounds->data, round, backwards ? n - 1 : 0, backwards ? -1 : 1, n, 0);
        }
        return;
    }
    Rounds all = { .rounds = rounds,
                   .n_shares = members < KILN_TEAM_SHARES ? members : KILN_TEAM_SHARES };
    kiln_team_run(members, do_rounds, &all);
}
