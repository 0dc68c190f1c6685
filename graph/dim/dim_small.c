/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/dim/dim_small.h"

#include "graph/dim/dim_priv.h"

void
kiln_dim_range_small(const KilnDim *dim, int64_t *lo, int64_t *hi)
{
    kiln_dim_range_within(dim, KILN_DIM_SMALL, lo, hi);
}

void
kiln_dim_table_assume_small(KilnDimTable *table)
{
    kiln_dim_table_small(table, true);
}

bool
kiln_dim_table_assumes_small(KilnDimTable *table)
{
    return kiln_dim_table_small(table, false);
}
