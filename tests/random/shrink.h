/* SPDX-License-Identifier: Apache-2.0 */
/* Makes what a property fails on small enough to read, and writes it down as a golden. */
#ifndef KILN_TESTS_RANDOM_SHRINK_H
#define KILN_TESTS_RANDOM_SHRINK_H

#include "tests/random/property.h"

/** A module that @property still fails on, with as few nodes, results and arguments as were found
 * to do; never the given one. */
KilnModule *shrink(const Property *property, const KilnModule *module);

/** The golden that asks for what failed: its header, the graph, and what the reference makes of it
 * as the expected text is for a reader to write. Free with g_free(). */
char *shrink_to_golden(const Property *property, const KilnModule *module, uint64_t seed);

#endif
