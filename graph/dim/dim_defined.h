/* SPDX-License-Identifier: Apache-2.0 */
/* Names of numbers that a run finds out: an instruction defines them. They begin at 0. */
#ifndef KILN_GRAPH_DIM_DIM_DEFINED_H
#define KILN_GRAPH_DIM_DIM_DEFINED_H

#include "graph/dim.h"

/** A name from 0 to @most, spelled as @wanted or, where that stands for something else, with a
 * dot and a number behind it. What has equal bounds may get the same name again. */
const KilnDim *kiln_dim_define(KilnDimTable *table, const char *wanted, int64_t most);

/** Name @name, which a node defines. */
const KilnDim *kiln_dim_defined(KilnDimTable *table, const char *name);

/** Finds the bounds of name @name; false where those that are stated hold. */
typedef bool (*KilnDimBounds)(void *data, const char *name, int64_t *lo, int64_t *hi);
/** kiln_dim_range() with other bounds of names. */
void kiln_dim_range_at(const KilnDim *dim, KilnDimBounds bounds, void *data, int64_t *lo,
                       int64_t *hi);
/** True where @matches says so of a name in @dim. */
bool kiln_dim_any_name(const KilnDim *dim, bool (*matches)(void *data, const char *name),
                       void *data);
/** True where kiln_dim_defined() was called for a name in @dim. */
bool kiln_dim_hangs_on_data(const KilnDim *dim);

#endif
