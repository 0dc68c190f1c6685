/* SPDX-License-Identifier: Apache-2.0 */
/* Generates graphs for measuring passes. Size and seed give the same graph on every machine. */
#ifndef KILN_BENCH_BENCH_GRAPH_H
#define KILN_BENCH_BENCH_GRAPH_H

#include "graph/module.h"

/** Returns a module of one function with about @nodes nodes. It has the patterns of exporters in
 * random order over a few live values: convolutions with normalizations, transposes, concats of
 * slices, chains of arithmetic, decomposed layer normalization, gelu and softmax, arithmetic on
 * shapes, quantization. NULL and @error mean a bug of Kiln. */
KilnModule *bench_graph(unsigned nodes, uint64_t seed, GError **error);

#endif
