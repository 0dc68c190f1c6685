/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/dim/dim_defined.h"

#include "graph/dim/dim_priv.h"

const KilnDim *
kiln_dim_define(KilnDimTable *table, const char *wanted, int64_t most)
{
    return kiln_dim_table_define(table, wanted, most);
}
