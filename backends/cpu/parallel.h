/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running tasks on one thread or on a team. What a task computes depends on its number only, never
 * on the thread that runs it, so that the schedule cannot reach the results; the thread's index is
 * handed over for its part of the scratch memory.
 *
 * Each thread begins with a share of its own, the same in every run, so that it finds in its cache
 * what it left there (weights above all), and helps the others when that is done.
 */
#pragma once

#include "backends/cpu/extents.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>

typedef void (*KilnCpuTask)(const void *data, int64_t task, int thread);

enum {
    KILN_CPU_SHARES = 16, /* threads beyond begin with another's */
};

/* Tasks next … end - 1 are left of a share; a cache line for each. */
typedef struct {
    _Alignas(KILN_CPU_LINE) _Atomic int64_t next;
    int64_t end;
} KilnCpuShare;

/** Run @task for 0 … @n - 1 on @threads threads; one thread opens no parallel region. */
static inline void
kiln_cpu_parallel(int64_t n, int threads, KilnCpuTask task, const void *data)
{
    if (threads <= 1 || n <= 1) {
        for (int64_t i = 0; i < n; i++)
            task(data, i, 0);
        return;
    }
    KilnCpuShare shares[KILN_CPU_SHARES];
    int n_shares = threads < KILN_CPU_SHARES ? threads : KILN_CPU_SHARES;
    for (int i = 0; i < n_shares; i++) {
        atomic_init(&shares[i].next, n * i / n_shares);
        shares[i].end = n * (i + 1) / n_shares;
    }
#pragma omp parallel num_threads(threads)
    {
        int thread = omp_get_thread_num();
        for (int i = 0; i < n_shares; i++) {
            KilnCpuShare *share = &shares[(thread + i) % n_shares];
            while (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end) {
                int64_t number = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
                if (number < share->end)
                    task(data, number, thread);
            }
        }
    }
}

typedef void (*KilnCpuMember)(const void *data, int member, int members);

/** Run @member once on each thread of a team of at most @threads, all at the same time: they may
 * wait for each other (barrier.h). */
static inline void
kiln_cpu_team(int threads, KilnCpuMember member, const void *data)
{
    if (threads <= 1) {
        member(data, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    member(data, omp_get_thread_num(), omp_get_num_threads());
}
