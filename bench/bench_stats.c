/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and what to say of many times. */
#include "bench/bench_stats.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double
seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double
bench_now(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double
bench_cpu_now(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static int
compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The nearest-rank percentile. */
static double
percentile(const double *sorted, unsigned n, double share)
{
    unsigned rank = (unsigned)(share * n);
    return sorted[rank < n ? rank : n - 1];
}

BenchStats
bench_stats(double *samples, unsigned n)
{
    qsort(samples, n, sizeof *samples, compare);
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += samples[i];
    double median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
    return (BenchStats){
        n, samples[0], median, percentile(samples, n, 0.9), percentile(samples, n, 0.99), sum / n
    };
}

gint64
bench_peak_rss(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (gint64)usage.ru_maxrss * 1024;
}
