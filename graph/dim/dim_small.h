/* SPDX-License-Identifier: Apache-2.0 */
/* Names without an upper bound are assumed to be small where floats count with dims: then a
 * program for open dims takes small numbers alone, and others get programs of their own. */
#ifndef KILN_GRAPH_DIM_DIM_SMALL_H
#define KILN_GRAPH_DIM_DIM_SMALL_H

#include "graph/dim.h"

enum {
    KILN_DIM_SMALL = 1 << 20 /* the upper bound of a name for which nobody stated one */
};

/** kiln_dim_range() under this assumption. */
void kiln_dim_range_small(const KilnDim *dim, int64_t *lo, int64_t *hi);
/** Says that something that is known of expressions of @table rests on the assumption. */
void kiln_dim_table_assume_small(KilnDimTable *table);
bool kiln_dim_table_assumes_small(KilnDimTable *table);

#endif
