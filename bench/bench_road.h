/* SPDX-License-Identifier: Apache-2.0 */
/* The road of a model from a file to a session and back, stage by stage, timed. */
#ifndef KILN_BENCH_BENCH_ROAD_H
#define KILN_BENCH_BENCH_ROAD_H

#include "graph/module.h"

#include <stdbool.h>

typedef enum {
    BENCH_ROAD_PRINT,
    BENCH_ROAD_PARSE,
    BENCH_ROAD_EXPORT,
    BENCH_ROAD_IMPORT,
    BENCH_ROAD_COMPILE, /* the whole default pipeline, to a bound program */
    BENCH_ROAD_SAVE,
    BENCH_ROAD_LOAD,
    BENCH_ROAD_SESSION,
    BENCH_ROAD_N,
} BenchRoadStage;

const char *bench_road_name(BenchRoadStage stage);
/** Walks the road with @module once, or where it is @open, as far as compiling it, which leaves
 * most to the first run. Seconds of processor time per stage, negative where it was not walked. */
gboolean bench_road(const KilnModule *module, bool open, double seconds[BENCH_ROAD_N],
                    GError **error);

#endif
