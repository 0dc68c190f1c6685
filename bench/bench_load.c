/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_load.h"

#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct BenchLoad {
    int n;
    pid_t children[];
};

static void
pin_to_last(void)
{
    cpu_set_t allowed, last;
    CPU_ZERO(&last);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        CPU_SET(cpu, &last);
        sched_setaffinity(0, sizeof last, &last);
        return;
    }
}

static void G_GNUC_NORETURN
keep_busy(pid_t parent, bool pin)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (pin)
        pin_to_last();
    for (volatile unsigned turn = 0; getppid() == parent; turn = 0) {
        while (turn < 1u << 30)
            turn = turn + 1;
    }
    _exit(0);
}

BenchLoad *
bench_load_start(int n, bool pin)
{
    BenchLoad *load = g_malloc0(sizeof *load + (gsize)n * sizeof *load->children);
    pid_t parent = getpid();
    for (; load->n < n; load->n++) {
        pid_t child = fork();
        if (child == 0)
            keep_busy(parent, pin);
        if (child < 0) {
            bench_load_stop(load);
            return NULL;
        }
        load->children[load->n] = child;
    }
    return load;
}

void
bench_load_stop(BenchLoad *load)
{
    for (int i = 0; load && i < load->n; i++)
        kill(load->children[i], SIGKILL);
    for (int i = 0; load && i < load->n; i++)
        waitpid(load->children[i], NULL, 0);
    g_free(load);
}
