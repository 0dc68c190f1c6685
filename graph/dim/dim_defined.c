/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/dim/dim_defined.h"

#include "graph/dim/dim_priv.h"

const KilnDim *
kiln_dim_define(KilnDimTable *table, const char *wanted, int64_t most)
{
    return kiln_dim_table_define(table, wanted, most);
}

const KilnDim *
kiln_dim_defined(KilnDimTable *table, const char *name)
{
    return kiln_dim_table_defined(table, name);
}

static bool
is_defined(void *table, const char *name)
{
    return kiln_dim_name(table, name)->u.name.defined;
}

bool
kiln_dim_hangs_on_data(const KilnDim *dim)
{
    return dim && kiln_dim_any_name(dim, is_defined, kiln_dim_table_of(dim));
}
