/* SPDX-License-Identifier: Apache-2.0 */
/* Measures shapes in every way that they can be computed. */
#ifndef KILN_BENCH_COST_MEASURE_H
#define KILN_BENCH_COST_MEASURE_H

#include "bench/cost_shape.h"

typedef struct {
    uint32_t kinds;    /* bit per ShapeKind: those that are measured */
    guint part, parts; /* of every @parts shapes that number @part alone, from 0 on */
    double min_time;   /* seconds that each shape is measured for in each way */
} CostMeasure;
enum {
    COST_ALL_KINDS = (1 << N_SHAPE_KINDS) - 1
};
/** Measures as @how says; what is measured takes the place of the same in @shapes. Without a vendor
 * library its ways are left out. */
gboolean cost_shapes_measure(GArray *shapes, const CostMeasure *how, GError **error);

#endif
