/* SPDX-License-Identifier: Apache-2.0 */
/* The strongest test of constants. A program computes the same bits for a tensor given in any
 * way: as a literal, an argument known at compile time or at the first run, or an input. */
#ifndef KILN_TESTS_RANDOM_WAYS_H
#define KILN_TESTS_RANDOM_WAYS_H

#include "kiln.h"
#include "tests/random/subject.h"

/** Gives about half of the constants of @subject's module in each of these ways and in a mixture.
 * Programs run on `ref` and on `cpu` without offload. Names and @seed choose the constants. Only
 * the bit-exact passes of the default pipeline run, because passes that round may look at literals.
 * *@fired tells whether there was any such constant. */
gboolean ways_agree(uint64_t seed, Subject *subject, bool *fired, GError **error);
/** The passes of the default pipeline that change no bit, and the lowerings. @seed decides what
 * constant folding does. */
KilnPipeline *ways_exact_pipeline(uint64_t seed, GError **error);

#endif
