/* SPDX-License-Identifier: Apache-2.0 */
/* Random typed graphs for property tests: the same seed gives the same module on every machine. */
#ifndef KILN_TESTS_RANDOM_GRAPH_H
#define KILN_TESTS_RANDOM_GRAPH_H

#include "graph/module.h"

/** A module of one function whose nodes, shapes, constants and results come from @seed; the caller
 * frees it. */
KilnModule *random_graph(uint64_t seed);

#endif
