/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions that inference takes for equal although some numbers make them differ. A program for
 * open dims takes other numbers alone. */
#ifndef KILN_GRAPH_DIM_DIM_EQUAL_H
#define KILN_GRAPH_DIM_DIM_EQUAL_H

#include "graph/dim.h"

/** Says that types rest on the assumption that @a and @b, of @table, are equal. */
void kiln_dim_table_assume_equal(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** The sides of assumption @i, in the order of their statements. False behind the last one. */
bool kiln_dim_table_assumed_equal(KilnDimTable *table, unsigned i, const KilnDim **out_a,
                                  const KilnDim **out_b);

#endif
