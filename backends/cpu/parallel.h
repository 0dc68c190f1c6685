/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running tasks on one thread or on a team. What a task computes depends on its number only, never
 * on the thread that runs it, so that the schedule cannot reach the results; the thread's index is
 * handed over for its part of the scratch memory.
 */
#pragma once

#include <omp.h>
#include <stdint.h>

typedef void (*KilnCpuTask)(const void *data, int64_t task, int thread);

/** Run @task for 0 … @n - 1 on @threads threads; one thread opens no parallel region. */
static inline void
kiln_cpu_parallel(int64_t n, int threads, KilnCpuTask task, const void *data)
{
    if (threads <= 1 || n <= 1) {
        for (int64_t i = 0; i < n; i++)
            task(data, i, 0);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < n; i++)
        task(data, i, omp_get_thread_num());
}
