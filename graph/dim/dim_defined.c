/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/dim/dim_defined.h"

#include "graph/dim/dim_priv.h"

const KilnDim *
kiln_dim_define(KilnDimTable *table, const char *wanted, int64_t most)
{
    return kiln_dim_table_define(table, wanted, most);
}

static bool
begins_at_0(void *table, const char *name)
{
    KilnDimFacts facts;
    return kiln_dim_facts(kiln_dim_name(table, name), &facts) && facts.lo == 0;
}

bool
kiln_dim_hangs_on_data(const KilnDim *dim)
{
    return dim && kiln_dim_any_name(dim, begins_at_0, kiln_dim_table_of(dim));
}
