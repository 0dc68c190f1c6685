/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/dim/dim_guess.h"

#include "graph/dim/dim_priv.h"

void
kiln_dim_guess(KilnDimTable *table, const char *name, int64_t number)
{
    kiln_dim_table_guess(table, name, number);
}
