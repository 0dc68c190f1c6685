/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A barrier for a team that meets every few microseconds. Whoever waits spins first: going to sleep
 * and being woken costs more than most of these waits. Then it yields its processor, at once where
 * the team has more threads than there are processors: those that it waits for may need this one.
 */
#pragma once

#include <omp.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    KILN_CPU_SPINS = 1024 /* some microseconds */
};

/** What all write and what all read are on lines of their own. */
typedef struct {
    alignas(64) atomic_int arrived;
    alignas(64) atomic_uint round;
    int spins;
} KilnCpuBarrier;

/** How often a member of a team of at most @threads looks again before it yields. */
static inline int
kiln_cpu_spins(int threads)
{
    return threads > 1 && threads > omp_get_num_procs() ? 0 : KILN_CPU_SPINS;
}

/** A barrier for a team of at most @threads. */
static inline KilnCpuBarrier
kiln_cpu_barrier(int threads)
{
    return (KilnCpuBarrier){ .spins = kiln_cpu_spins(threads) };
}

static inline void
kiln_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* One look later: @spins are left. */
static inline void
kiln_cpu_linger(int *spins)
{
    if (*spins > 0) {
        --*spins;
        kiln_cpu_relax();
    } else {
        sched_yield();
    }
}

/** Returns when all @members have called it; what they wrote before is visible then. */
static inline void
kiln_cpu_barrier_wait(KilnCpuBarrier *barrier, int members)
{
    if (members <= 1)
        return;
    unsigned round = atomic_load_explicit(&barrier->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) == members - 1) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&barrier->round, round + 1, memory_order_release);
        return;
    }
    int spins = barrier->spins;
    while (atomic_load_explicit(&barrier->round, memory_order_acquire) == round)
        kiln_cpu_linger(&spins);
}

/** Returns once @flag is set; what was written before that, with release, is visible then. @spins:
 * of kiln_cpu_spins(). */
static inline void
kiln_cpu_await(const atomic_bool *flag, int spins)
{
    while (!atomic_load_explicit(flag, memory_order_acquire))
        kiln_cpu_linger(&spins);
}
