/* SPDX-License-Identifier: Apache-2.0 */
/* Measures shapes in every way that they can be computed. */
#ifndef KILN_BENCH_COST_MEASURE_H
#define KILN_BENCH_COST_MEASURE_H

#include "bench/cost_shape.h"

typedef struct {
    uint32_t kinds;    /* a bit per ShapeKind that is measured */
    guint part, parts; /* measures only shape number @part, from 0 on, of every @parts */
    double min_time;   /* seconds per shape and way */
} CostMeasure;
enum {
    COST_ALL_KINDS = (1 << N_SHAPE_KINDS) - 1
};
/** Measures as @how says and replaces old results in @shapes. Leaves out the vendor's ways if there
 * is no vendor library. */
gboolean cost_shapes_measure(GArray *shapes, const CostMeasure *how, GError **error);

#endif
