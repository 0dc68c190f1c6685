/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: each task is done once, rounds keep their order, callers at the same time share workers,
 * and a thread that cannot be made is missed by nobody. */
#include "exec/team.h"
#include "tests/concurrency/concurrency.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMBERS = 4,
    TASKS = 1000,
    ROUNDS = 300,
    CALLERS = 3,
};

typedef struct {
    atomic_int times[TASKS];
    atomic_bool busy[MEMBERS], overlap;
} Count;

static void
count_task(const void *data, int64_t task, int member)
{
    Count *count = *(Count *const *)data;
    if (member < 0 || member >= MEMBERS || atomic_exchange(&count->busy[member], true))
        atomic_store(&count->overlap, true);
    atomic_fetch_add(&count->times[task], 1);
    atomic_store(&count->busy[member], false);
}

static void
expect_each_once(void)
{
    Count *count = calloc(1, sizeof *count);
    kiln_team_tasks(TASKS, MEMBERS, count_task, &count);
    for (int i = 0; i < TASKS; i++)
        REQUIRE(atomic_load(&count->times[i]) == 1);
    REQUIRE(!atomic_load(&count->overlap));
    free(count);
}

/* Plain memory: a round reads what the one before wrote, which ThreadSanitizer watches. */
typedef struct {
    int64_t sums[2][64];
} Sums;

static int64_t
tasks_of(const void *data, unsigned round)
{
    (void)data;
    return 1 + round * 7 % 64;
}

static bool
backwards_of(const void *data, unsigned round)
{
    (void)data;
    return round & 1;
}

static void
add_up(const void *data, unsigned round, int64_t first, int step, int64_t n, int member)
{
    (void)member;
    Sums *sums = *(Sums *const *)data;
    REQUIRE(step == (backwards_of(NULL, round) ? -1 : 1));
    for (int64_t task = first; n > 0; task += step, n--) {
        int64_t sum = task, before = round > 0 ? tasks_of(NULL, round - 1) : 0;
        for (int64_t i = 0; i < before; i++)
            sum += sums->sums[(round + 1) & 1][i];
        sums->sums[round & 1][task] = sum % 1000003;
    }
}

static void
expect_rounds(void)
{
    Sums one, many, *at = &one;
    KilnTeamRounds rounds = { ROUNDS, tasks_of, backwards_of, add_up, &at };
    memset(&one, 0, sizeof one);
    memset(&many, 0, sizeof many);
    kiln_team_rounds(&rounds, 1);
    at = &many;
    kiln_team_rounds(&rounds, MEMBERS);
    REQUIRE(memcmp(&one, &many, sizeof one) == 0);
}

static void *
call(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        expect_each_once();
        expect_rounds();
    }
    return NULL;
}

static void
inner_task(const void *data, int64_t task, int member)
{
    (void)task;
    REQUIRE(member == 0); /* no team within a team */
    atomic_fetch_add(*(atomic_int *const *)data, 1);
}

static void
outer_task(const void *data, int64_t task, int member)
{
    (void)task;
    (void)member;
    kiln_team_tasks(10, MEMBERS, inner_task, data);
}

int
main(void)
{
    kiln_processors_set(MEMBERS);
    kiln_team_fail_threads(-1);
    call(NULL);
    REQUIRE(kiln_team_workers() == 0);
    kiln_team_fail_threads(0);
    call(NULL);
    REQUIRE(kiln_team_workers() <= MEMBERS - 1);
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, call, NULL) == 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    REQUIRE(kiln_team_workers() <= MEMBERS - 1);
    atomic_int done = 0, *at = &done;
    kiln_team_tasks(20, MEMBERS, outer_task, &at);
    REQUIRE(atomic_load(&done) == 200);
    KilnTeamScope before = kiln_team_enter(NULL, NULL), inner = kiln_team_enter(NULL, NULL);
    REQUIRE(kiln_team_limit() >= 1 && kiln_team_limit() <= MEMBERS);
    kiln_team_leave(inner);
    kiln_team_leave(before);
    printf("ok, %d workers\n", kiln_team_workers());
    return 0;
}
