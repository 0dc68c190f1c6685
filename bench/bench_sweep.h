/* SPDX-License-Identifier: Apache-2.0 */
/* Times an open model at one extent of a dim after the other: the first run, which moves the
 * session to the new shapes, and the runs behind it. */
#ifndef KILN_BENCH_BENCH_SWEEP_H
#define KILN_BENCH_BENCH_SWEEP_H

#include "bench/bench_stats.h"
#include "kiln.h"

#include <stdint.h>

typedef struct {
    char *dim;
    int64_t first, last, step;
} BenchSweep;

/** Reads `past=1..512` or `past=1..512:8`. KILN_ERROR_USAGE where it is neither. */
gboolean bench_sweep_parse(const char *text, BenchSweep *out, GError **error);
void bench_sweep_clear(BenchSweep *sweep);

typedef struct {
    int64_t extent;
    double first;     /* seconds of the run with new shapes */
    BenchStats later; /* of the runs with the same shapes */
    double cpu;       /* processor seconds of one of these */
} BenchSweepPoint;
typedef void (*BenchSweepFn)(const BenchSweepPoint *point, void *data);

/** Runs @program, whose model is open in the dim, on random inputs at each extent. Other open dims
 * have their hints. Measures each extent for @min_time seconds and at least five runs. @see gets
 * the results in order. */
gboolean bench_sweep(KilnProgram *program, const BenchSweep *sweep, int threads, double min_time,
                     BenchSweepFn see, void *data, GError **error);

#endif
