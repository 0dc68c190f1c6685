/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/team_load.h"

#ifndef KILN_TEAM_OPENMP

#include "exec/wait.h"

#include <sched.h>
#include <sys/resource.h>

enum {
    LATE_NS = 200 * 1000,         /* a wait that is not worth asking about */
    MISSED_NS = 500 * 1000,       /* work that nobody joined: then there is no processor */
    WOKEN_NS = 200 * 1000,        /* within this time a worker with a processor is awake, */
    GAP_NS = 50 * 1000,           /* and it is not stopped for this long */
    SCOUT_NS = 100 * 1000,        /* how long a scout looks, at least, */
    SCOUT_MOST_NS = 6000 * 1000,  /* and at most: longer than others get a processor at a time */
    PAUSE_NS = 1000 * 1000,       /* until a scout is asked for; doubles */
    SWITCH_NS = 20 * 1000 * 1000, /* one in this time is not a sign of load */
};
enum Scout {
    NOBODY,
    ASKED, /* for the next worker that has nothing to do */
    BUSY,
};

#define PAUSE_MOST_NS INT64_C(2000000000)
#define CALM 16 /* pauses without trouble: the next begins with the shortest */
#define SCOUT_SHARE 200

/* Halvings of the team, so that 0 is the state of a process that met no load. Fields are read and
 * written without a lock: an update that is lost is made at the next occasion. */
static struct {
    atomic_int halved;
    _Atomic int64_t pause;  /* the last one */
    _Atomic int64_t until;  /* no scout before */
    _Atomic int64_t missed; /* ns of work that nobody joined */
    _Atomic int scout;      /* of enum Scout */
    _Atomic int64_t asked_at;
    atomic_int asked_cpu;
} load;

static __thread long switches_before;
static __thread int64_t switches_at;

static int
current_cpu(void)
{
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

static long
switches(void)
{
#ifdef RUSAGE_THREAD
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) == 0)
        return usage.ru_nivcsw;
#endif
    return 0;
}

/* --- smaller and larger --- */

static void
pause_for(int64_t pause, int64_t now, int64_t lost)
{
    atomic_store(&load.pause, pause);
    atomic_store(&load.until, now + pause + 8 * lost);
}

static int64_t
longer(int64_t pause)
{
    pause = pause < PAUSE_NS ? PAUSE_NS : 2 * pause;
    return pause < PAUSE_MOST_NS ? pause : PAUSE_MOST_NS;
}

static void
shrink(int64_t lost, int processors)
{
    int64_t now = kiln_now_ns(), pause = atomic_load(&load.pause);
    bool again = now - atomic_load(&load.until) < CALM * pause;
    int halved = atomic_load(&load.halved);
    if (processors >> halved > 1)
        atomic_store(&load.halved, halved + 1);
    pause_for(again ? longer(pause) : PAUSE_NS, now, lost);
    switches_before = switches();
    switches_at = now;
}

/* Others want the processor of this thread itself. */
static bool
is_interrupted(int64_t now)
{
    long count = switches();
    bool often = switches_at && count - switches_before > (now - switches_at) / SWITCH_NS + 1;
    switches_before = count;
    switches_at = now;
    return often;
}

static void
answer(bool free, int64_t now)
{
    int halved = atomic_load(&load.halved);
    if (!free)
        pause_for(longer(atomic_load(&load.pause)), now, 0);
    else if (halved > 0)
        atomic_store(&load.halved, halved - 1);
    if (free && halved > 1)
        atomic_store(&load.until, now + PAUSE_NS);
}

static void
ask(void)
{
    int64_t now = kiln_now_ns();
    int nobody = NOBODY;
    if (now < atomic_load_explicit(&load.until, memory_order_relaxed) ||
        !atomic_compare_exchange_strong(&load.scout, &nobody, BUSY))
        return;
    if (is_interrupted(now)) {
        answer(false, now);
        atomic_store(&load.scout, NOBODY);
        return;
    }
    atomic_store(&load.asked_at, now);
    atomic_store(&load.asked_cpu, current_cpu());
    atomic_store(&load.scout, ASKED);
    kiln_team_call_scout();
}

int
kiln_load_limit(int processors)
{
    int halved = atomic_load_explicit(&load.halved, memory_order_relaxed);
    if (halved == 0)
        return processors;
    ask();
    int limit = halved < 31 ? processors >> halved : 0;
    return limit > 1 ? limit : 1;
}

void
kiln_load_report(const KilnLoadJob *job, int processors)
{
    if (job->joined)
        atomic_store_explicit(&load.missed, 0, memory_order_relaxed);
    else if (atomic_fetch_add_explicit(&load.missed, job->work_ns, memory_order_relaxed) +
                 job->work_ns >
             MISSED_NS) {
        atomic_store(&load.missed, 0);
        shrink(0, processors);
    }
    if (job->wait_ns > LATE_NS && job->wait_ns > job->work_ns / 2)
        shrink(job->wait_ns, processors);
}

/* --- scouts --- */

/* Looks at the clock for @ns. */
static bool
runs_on(int64_t ns)
{
    long before = switches();
    int64_t now = kiln_now_ns(), end = now + ns;
    while (now < end) {
        for (int i = 0; i < 32; i++)
            kiln_relax();
        int64_t next = kiln_now_ns();
        if (next - now > GAP_NS)
            return false;
        now = next;
    }
    return switches() == before;
}

void
kiln_load_scout(void)
{
    int asked = ASKED;
    if (atomic_load_explicit(&load.scout, memory_order_relaxed) != ASKED ||
        !atomic_compare_exchange_strong(&load.scout, &asked, BUSY))
        return;
    int64_t woken = kiln_now_ns() - atomic_load(&load.asked_at);
    int64_t look = atomic_load(&load.pause) / SCOUT_SHARE;
    look = look < SCOUT_NS ? SCOUT_NS : look > SCOUT_MOST_NS ? SCOUT_MOST_NS : look;
    int cpu = current_cpu();
    bool elsewhere = cpu < 0 || cpu != atomic_load(&load.asked_cpu);
    bool free = woken < WOKEN_NS && elsewhere && runs_on(look);
    answer(free, kiln_now_ns());
    atomic_store(&load.scout, NOBODY);
}

void
kiln_load_reset(void)
{
    atomic_store(&load.halved, 0);
    atomic_store(&load.pause, 0);
    atomic_store(&load.until, 0);
    atomic_store(&load.missed, 0);
    atomic_store(&load.scout, NOBODY);
}

#endif
