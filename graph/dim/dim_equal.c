/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/dim/dim_equal.h"

#include "graph/dim/dim_priv.h"

void
kiln_dim_table_assume_equal(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    kiln_dim_table_add_pair(table, a, b);
}

bool
kiln_dim_table_assumed_equal(KilnDimTable *table, unsigned i, const KilnDim **out_a,
                             const KilnDim **out_b)
{
    KilnDimPair pair = { NULL, NULL };
    bool found = kiln_dim_table_pair(table, i, &pair);
    *out_a = pair.a;
    *out_b = pair.b;
    return found;
}
