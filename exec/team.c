/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of the process. Workers are made when a job first has use for them, and stay. A thread
 * that cannot be made is no error: there are fewer workers then.
 *
 * A job is published in one of a few places that never go away, so that a worker may look at one at
 * any time. Its state says in one word whether it is open and who is inside: a worker joins by
 * changing that word, which fails once the caller has closed it. */
#include "exec/team.h"

#include "exec/wait.h"

#ifndef KILN_TEAM_OPENMP

#include "exec/float_env.h"
#include "exec/team_load.h"

#include <pthread.h>
#include <signal.h>

enum {
    JOBS = 16, /* at the same time; further callers run alone */
    WORKERS = 1023,
    FAILED_NS = 1000 * 1000 * 1000, /* until another thread is tried where one could not be made */
};

/* A job's state: members inside besides the caller, members that ever joined, how many may. */
#define INSIDE UINT64_C(1)
#define JOINED (UINT64_C(1) << 16)
#define ROOM (UINT64_C(1) << 32)
#define OPEN (UINT64_C(1) << 48)
#define FIELD(state, unit) ((int)((state) / (unit)&0xffff))

typedef struct {
    alignas(64) atomic_bool taken;
    _Atomic uint64_t state;
    KilnTeamMember member;
    void *data;
    KilnWord left; /* changes when the last one leaves a closed job */
} Job;

static struct {
    pthread_mutex_t making;
    atomic_int workers;
    _Atomic int64_t failed_at; /* 0: no thread was refused */
    atomic_int to_fail;        /* of tests */
    alignas(64) atomic_int callers;
    KilnWord published; /* changes with each job */
    Job jobs[JOBS];
} team = { .making = PTHREAD_MUTEX_INITIALIZER };

static __thread KilnTeamScope scope;
static __thread bool is_member; /* works for a job now */

/* --- workers --- */

static bool
join(Job *job, int *out_member)
{
    uint64_t state = atomic_load_explicit(&job->state, memory_order_relaxed);
    do {
        if (!(state & OPEN) || FIELD(state, JOINED) >= FIELD(state, ROOM))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&job->state, &state, state + JOINED + INSIDE,
                                                    memory_order_acq_rel, memory_order_relaxed));
    *out_member = FIELD(state, JOINED) + 1;
    return true;
}

static void
leave(Job *job)
{
    uint64_t state = atomic_fetch_sub(&job->state, INSIDE) - INSIDE;
    if (FIELD(state, INSIDE) == 0 && !(state & OPEN)) {
        atomic_fetch_add(&job->left.value, 1);
        kiln_word_wake(&job->left, 1);
    }
}

static bool
help(void)
{
    bool helped = false;
    int member;
    for (int i = 0; i < JOBS; i++) {
        Job *job = &team.jobs[i];
        if (!join(job, &member))
            continue;
        job->member(job->data, member);
        leave(job);
        helped = true;
    }
    return helped;
}

static void *
work(void *unused)
{
    (void)unused;
    is_member = true;
    kiln_float_env_enter();
    for (;;) {
        unsigned seen = kiln_word_get(&team.published);
        kiln_load_scout();
        if (!help() && kiln_word_spin(&team.published, seen, KILN_SPIN_NS) == seen)
            kiln_word_sleep(&team.published, seen);
    }
    return NULL;
}

/* Signals of the process are for its own threads. */
static int
make_worker(void)
{
    int left = atomic_load(&team.to_fail);
    if (left != 0) {
        atomic_store(&team.to_fail, left > 0 ? left - 1 : left);
        return -1;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return -1;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&thread, &attr, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return status;
}

/* The child has the thread that called fork(), and none of the workers. */
static void
start_over(void)
{
    pthread_mutex_init(&team.making, NULL);
    atomic_store(&team.workers, 0);
    atomic_store(&team.failed_at, 0);
    atomic_store(&team.callers, scope.depth > 0 ? 1 : 0);
    atomic_store(&team.published.sleepers, 0);
    for (int i = 0; i < JOBS; i++) {
        atomic_store(&team.jobs[i].state, 0);
        atomic_store(&team.jobs[i].taken, false);
        atomic_store(&team.jobs[i].left.sleepers, 0);
    }
    kiln_load_reset();
}

static pthread_once_t at_fork = PTHREAD_ONCE_INIT;

static void
watch_fork(void)
{
    pthread_atfork(NULL, NULL, start_over);
}

static void
make_workers(int n)
{
    if (atomic_load_explicit(&team.workers, memory_order_relaxed) >= n)
        return;
    int64_t failed_at = atomic_load(&team.failed_at);
    if (failed_at && kiln_now_ns() - failed_at < FAILED_NS)
        return;
    pthread_once(&at_fork, watch_fork);
    pthread_mutex_lock(&team.making);
    while (atomic_load(&team.workers) < n && n <= WORKERS) {
        if (make_worker() != 0) {
            atomic_store(&team.failed_at, kiln_now_ns());
            break;
        }
        atomic_fetch_add(&team.workers, 1);
    }
    pthread_mutex_unlock(&team.making);
}

void
kiln_team_call_scout(void)
{
    atomic_fetch_add(&team.published.value, 1);
    kiln_word_wake(&team.published, 1);
}

int
kiln_team_workers(void)
{
    return atomic_load(&team.workers);
}

void
kiln_team_fail_threads(int n)
{
    atomic_store(&team.to_fail, n);
    atomic_store(&team.failed_at, 0);
}

/* --- callers --- */

static Job *
take_job(void)
{
    for (int i = 0; i < JOBS; i++) {
        Job *job = &team.jobs[i];
        if (!atomic_load_explicit(&job->taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&job->taken, true, memory_order_acquire))
            return job;
    }
    return NULL;
}

static void
publish(Job *job, int room)
{
    atomic_store_explicit(&job->state, OPEN + (uint64_t)room * ROOM, memory_order_release);
    atomic_fetch_add(&team.published.value, 1);
    kiln_word_wake(&team.published, (unsigned)room);
}

/* Returns how long it waited; nobody is inside any more. */
static int64_t
close_job(Job *job, int64_t now, bool *out_joined)
{
    uint64_t state = atomic_fetch_and(&job->state, ~OPEN);
    *out_joined = FIELD(state, JOINED) > 0;
    if (FIELD(state, INSIDE) == 0)
        return 0;
    for (;;) {
        unsigned left = kiln_word_get(&job->left);
        if (FIELD(atomic_load_explicit(&job->state, memory_order_acquire), INSIDE) == 0)
            break;
        kiln_word_await(&job->left, left);
    }
    return kiln_now_ns() - now;
}

static void
run_job(Job *job, int members, KilnTeamMember member, void *data)
{
    job->member = member;
    job->data = data;
    int64_t start = kiln_now_ns();
    publish(job, members - 1);
    is_member = true;
    member(data, 0);
    is_member = false;
    int64_t end = kiln_now_ns();
    KilnLoadJob took = { .work_ns = end - start };
    took.wait_ns = close_job(job, end, &took.joined);
    took.joined |= atomic_load_explicit(&team.callers, memory_order_relaxed) > 1;
    atomic_store_explicit(&job->taken, false, memory_order_release);
    kiln_load_report(&took, kiln_processors());
}

/* What a task of a caller's pool does. */
typedef struct {
    KilnTeamMember member;
    void *data;
} Call;

static void
run_call(void *data, int i)
{
    const Call *call = data;
    KilnFloatEnv before = kiln_float_env_enter();
    bool was_member = is_member;
    is_member = true;
    call->member(call->data, i);
    is_member = was_member;
    kiln_float_env_leave(before);
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
    Job *job = NULL;
    if (members > 1) {
        make_workers(members - 1);
        job = kiln_team_workers() > 0 ? take_job() : NULL;
    }
    if (job) {
        run_job(job, members, member, data);
        return;
    }
    bool was_member = is_member;
    is_member = true;
    member(data, 0);
    is_member = was_member;
}

/* Processors are divided among the threads that compute now. */
int
kiln_team_limit(void)
{
    int processors = kiln_processors();
    int callers = atomic_load_explicit(&team.callers, memory_order_relaxed);
    int share = callers > 1 ? processors / callers : processors;
    if (share <= 1)
        return 1;
    int limit = kiln_load_limit(processors);
    return limit < share ? limit : share;
}

KilnTeamScope
kiln_team_enter(KilnTeamFor parallel_for, void *pool)
{
    KilnTeamScope before = scope;
    if (before.depth == 0)
        atomic_fetch_add_explicit(&team.callers, 1, memory_order_relaxed);
    scope = (KilnTeamScope){ parallel_for, pool, before.depth + 1 };
    return before;
}

void
kiln_team_leave(KilnTeamScope before)
{
    if (before.depth == 0)
        atomic_fetch_sub_explicit(&team.callers, 1, memory_order_relaxed);
    scope = before;
}

#endif
