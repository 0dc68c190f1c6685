/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of inputs and facts about open dims, in the C interface. Part of kiln.h, which includes
 * it. */
#ifndef KILN_RUNTIME_KILN_SHAPES_H
#define KILN_RUNTIME_KILN_SHAPES_H

#include "graph/kiln-types.h"

#include <stdint.h>

G_BEGIN_DECLS

/** The shape of an input whose model leaves dims open. */
typedef struct {
    const char *input;
    int rank;
    int64_t dims[8]; /* -1: open still, as the model says */
} KilnShape;

enum {
    KILN_LEAST_ZERO = -1 /* KilnDimRange.least: 0 is allowed, too */
};

/** Facts about an open dim. 0 states nothing. Runs with other numbers fail with KILN_ERROR_SHAPE.
 * Programs of one model may have different facts. */
typedef struct {
    const char *name;    /* as in KilnTensorInfo.dim_names of the model */
    int64_t least, most; /* both are allowed; without @least a dim is 1 or more */
    int64_t multiple;    /* each number is a multiple of it */
    int64_t hint;        /* a likely number: costs are weighed for it */
} KilnDimRange;

G_END_DECLS

#endif
