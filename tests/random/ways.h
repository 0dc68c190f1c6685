/* SPDX-License-Identifier: Apache-2.0 */
/* The strongest oracle of constants: a program computes the same bits whether a tensor is a literal
 * of the model, an argument known when the program is compiled or at its first run, or an input
 * like any other. */
#ifndef KILN_TESTS_RANDOM_WAYS_H
#define KILN_TESTS_RANDOM_WAYS_H

#include "tests/random/subject.h"

/** Gives about half of the constants of @subject's module in these ways, and in a mixture of them,
 * to programs on `ref` and on `cpu` without offload. Which ones hangs on their names and @seed.
 * Passes that round may look at literals: what of the default pipeline is bit-exact runs. *@fired
 * tells whether there was any such constant. */
gboolean ways_agree(uint64_t seed, Subject *subject, bool *fired, GError **error);

#endif
