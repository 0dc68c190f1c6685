/* SPDX-License-Identifier: Apache-2.0 */
/* The teams of a build with KILN_POOL=openmp: those of OpenMP, one pool for each thread that calls.
 * They wait for each of their threads, so that such a build is for machines without other load. */
#include "exec/team.h"

#ifdef KILN_TEAM_OPENMP

#include "exec/float_env.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

static __thread KilnTeamScope scope;
static __thread bool is_member;
static atomic_int callers;
static atomic_bool forked; /* OpenMP's threads are gone */
static pthread_once_t at_fork = PTHREAD_ONCE_INIT;

static void
start_over(void)
{
    atomic_store(&forked, true);
    atomic_store(&callers, scope.depth > 0 ? 1 : 0);
}

static void
watch_fork(void)
{
    pthread_atfork(NULL, NULL, start_over);
}

static void
run_member(KilnTeamMember member, void *data, int number)
{
    KilnFloatEnv before = kiln_float_env_enter();
    bool was_member = is_member;
    is_member = true;
    member(data, number);
    is_member = was_member;
    kiln_float_env_leave(before);
}

typedef struct {
    KilnTeamMember member;
    void *data;
} Call;

static void
run_call(void *data, int i)
{
    const Call *call = data;
    run_member(call->member, call->data, i);
}

void
kiln_team_run(int members, KilnTeamMember member, void *data)
{
    if (members > 1 && !is_member && scope.parallel_for) {
        scope.parallel_for(scope.pool, members, run_call, &(Call){ member, data });
        return;
    }
    int limit = members > 1 && !is_member ? kiln_team_limit() : 1;
    if (limit < members)
        members = limit;
    if (members <= 1) {
        run_member(member, data, 0);
        return;
    }
    pthread_once(&at_fork, watch_fork);
#pragma omp parallel num_threads(members)
    run_member(member, data, omp_get_thread_num());
}

int
kiln_team_limit(void)
{
    int n = atomic_load(&callers), processors = kiln_processors();
    int share = n > 1 ? processors / n : processors;
    return share < 1 || atomic_load(&forked) ? 1 : share;
}

KilnTeamScope
kiln_team_enter(KilnTeamFor parallel_for, void *pool)
{
    KilnTeamScope before = scope;
    if (before.depth == 0)
        atomic_fetch_add(&callers, 1);
    scope = (KilnTeamScope){ parallel_for, pool, before.depth + 1 };
    return before;
}

void
kiln_team_leave(KilnTeamScope before)
{
    if (before.depth == 0)
        atomic_fetch_sub(&callers, 1);
    scope = before;
}

/* OpenMP does not say, and cannot be made to fail. */
int
kiln_team_workers(void)
{
    return 0;
}

void
kiln_team_fail_threads(int n)
{
    (void)n;
}

#endif
