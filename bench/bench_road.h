/* SPDX-License-Identifier: Apache-2.0 */
/* Times the road of a model from a file to a session and back, stage by stage. */
#ifndef KILN_BENCH_BENCH_ROAD_H
#define KILN_BENCH_BENCH_ROAD_H

#include "graph/module.h"

#include <stdbool.h>

typedef enum {
    BENCH_ROAD_PRINT,
    BENCH_ROAD_PARSE,
    BENCH_ROAD_EXPORT,
    BENCH_ROAD_IMPORT,
    BENCH_ROAD_COMPILE, /* the whole default pipeline up to a bound program */
    BENCH_ROAD_SAVE,
    BENCH_ROAD_LOAD,
    BENCH_ROAD_SESSION,
    BENCH_ROAD_N,
} BenchRoadStage;

const char *bench_road_name(BenchRoadStage stage);
/** Walks the road with @module once. It ends at compiling if @module is @open, which leaves most to
 * the first run. Stores seconds of processor time per stage, negative for a stage not walked. */
gboolean bench_road(const KilnModule *module, bool open, double seconds[BENCH_ROAD_N],
                    GError **error);

#endif
