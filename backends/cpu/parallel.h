/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tasks of a kernel on one thread or on a team (exec/team.h). The result of a task depends
 * on its number only. A task also gets the number of its team member, which selects its part of the
 * scratch memory. */
#ifndef KILN_BACKENDS_CPU_PARALLEL_H
#define KILN_BACKENDS_CPU_PARALLEL_H

#include "exec/team.h"

typedef KilnTeamTask KilnCpuTask;

/** Runs @task for 0 … @n - 1 on at most @threads threads. */
static inline void
kiln_cpu_parallel(int64_t n, int threads, KilnCpuTask task, const void *data)
{
    if (threads > 1 && n > 1) {
        kiln_team_tasks(n, threads, task, data);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        task(data, i, 0);
}

#endif
