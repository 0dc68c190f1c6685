/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and what to say of many times. */
#ifndef KILN_BENCH_BENCH_STATS_H
#define KILN_BENCH_BENCH_STATS_H

#include <glib.h>

/** Seconds of the monotonic clock. */
double bench_now(void);
/** Seconds of processor time of the process, all threads. */
double bench_cpu_now(void);

typedef struct {
    unsigned n;
    double min, median, p90, p99, mean;
} BenchStats;
/** Of @n > 0 samples, which are sorted in place. */
BenchStats bench_stats(double *samples, unsigned n);

/** The largest resident set of this process so far, in bytes. */
gint64 bench_peak_rss(void);

#endif
