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

/** A barrier for a team of at most @threads. */
static inline KilnCpuBarrier
kiln_cpu_barrier(int threads)
{
    bool crowded = threads > 1 && threads > omp_get_num_procs();
    return (KilnCpuBarrier){ .spins = crowded ? 0 : KILN_CPU_SPINS };
}

static inline void
kiln_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
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
    int spins = 0;
    while (atomic_load_explicit(&barrier->round, memory_order_acquire) == round) {
        if (spins++ < barrier->spins)
            kiln_cpu_relax();
        else
            sched_yield();
    }
}
