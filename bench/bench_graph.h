/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic graphs for measuring passes: the same size and seed give the same graph everywhere. */
#ifndef KILN_BENCH_BENCH_GRAPH_H
#define KILN_BENCH_BENCH_GRAPH_H

#include "graph/module.h"

/** A module of one function with about @nodes nodes: what exporters write - convolutions with
 * normalizations, transposes, concats of slices, chains of arithmetic, decomposed layer
 * normalization, gelu and softmax, arithmetic on shapes, quantization - in random order over a few
 * live values. NULL and @error: our bug. */
KilnModule *bench_graph(unsigned nodes, uint64_t seed, GError **error);

#endif
