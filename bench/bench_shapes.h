/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic graphs of one shape each, which find work that grows with the square of the uses of a
 * value, of the values that are alive at once, or of the depth of subgraphs. */
#ifndef KILN_BENCH_BENCH_SHAPES_H
#define KILN_BENCH_BENCH_SHAPES_H

#include "graph/module.h"

#include <stdbool.h>

/** The name of shape @i; NULL past the end. */
const char *bench_shape_name(unsigned i);
/** One line about shape @i. */
const char *bench_shape_summary(unsigned i);
bool bench_shape_exists(const char *name);
/** True where values of inputs decide what is lowered, so that IR comes with a run alone. */
bool bench_shape_is_graph_only(const char *name);

/** A module of about @nodes nodes of the shape @name. NULL and @error: our bug. */
KilnModule *bench_shape(const char *name, unsigned nodes, GError **error);

#endif
