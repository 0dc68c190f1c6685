/* SPDX-License-Identifier: Apache-2.0 */
/* Generates graphs of one shape each. They find work that grows with the square of the uses of a
 * value, of the values alive at once, or of the depth of subgraphs. */
#ifndef KILN_BENCH_BENCH_SHAPES_H
#define KILN_BENCH_BENCH_SHAPES_H

#include "graph/module.h"

#include <stdbool.h>

/** Returns the name of shape @i; NULL past the end. */
const char *bench_shape_name(unsigned i);
/** Returns a line that describes shape @i. */
const char *bench_shape_summary(unsigned i);
bool bench_shape_exists(const char *name);
/** True if lowering needs the values of inputs, so that only a run has IR. */
bool bench_shape_is_graph_only(const char *name);

/** Returns a module of shape @name with about @nodes nodes. NULL and @error mean a bug of Kiln. */
KilnModule *bench_shape(const char *name, unsigned nodes, GError **error);

#endif
