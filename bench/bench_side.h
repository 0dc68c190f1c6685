/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a model ready to be timed: compiled without passes and bound to random inputs. */
#ifndef KILN_BENCH_BENCH_SIDE_H
#define KILN_BENCH_BENCH_SIDE_H

#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/session.h"

typedef struct {
    KilnProgram *program;
    KilnSession *session;
    GPtrArray *inputs; /* GBytes* */
} BenchSide;

/** Opens @side and runs it once, which warms caches and finds errors. Clear @side in any case. */
gboolean bench_side_open(BenchSide *side, KilnModel *model, const char *target, int threads,
                         GError **error);
void bench_side_clear(BenchSide *side);

/** Stores the seconds of a run, the mean of @repeats. */
gboolean bench_side_time(const BenchSide *side, int repeats, double *out, GError **error);

#endif
