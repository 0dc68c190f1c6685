/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, statistics of measured times, and peak memory. */
#ifndef KILN_BENCH_BENCH_STATS_H
#define KILN_BENCH_BENCH_STATS_H

#include <glib.h>

/** Returns the seconds of the monotonic clock. */
double bench_now(void);
/** Returns the seconds of processor time of the process, all threads. */
double bench_cpu_now(void);

typedef struct {
    unsigned n;
    double min, median, p90, p99, mean;
} BenchStats;
/** Computes statistics of @n > 0 samples. Sorts them in place. */
BenchStats bench_stats(double *samples, unsigned n);

/** Returns the largest resident set of this process so far, in bytes. */
gint64 bench_peak_rss(void);

#endif
