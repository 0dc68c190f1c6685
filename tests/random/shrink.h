/* SPDX-License-Identifier: Apache-2.0 */
/* Shrinks a module that a property fails on until people can read it. Prints it as a golden. */
#ifndef KILN_TESTS_RANDOM_SHRINK_H
#define KILN_TESTS_RANDOM_SHRINK_H

#include "graph/graph.h"
#include "tests/random/property.h"

/** Returns a module that @property still fails on, with as few nodes, results and arguments as it
 * finds. It is never @module itself. */
KilnModule *shrink(const Property *property, const KilnModule *module);

/** Returns a golden for the failure: its header and the graph. The reader writes the expected text.
 * Free it with g_free(). */
char *shrink_to_golden(const Property *property, const KilnModule *module, uint64_t seed);

#endif
