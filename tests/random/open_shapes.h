/* SPDX-License-Identifier: Apache-2.0 */
/* Open programs are right: one program with open dims computes what programs for numbers do. */
#ifndef KILN_TESTS_RANDOM_OPEN_SHAPES_H
#define KILN_TESTS_RANDOM_OPEN_SHAPES_H

#include "tests/random/subject.h"

enum {
    OPEN_WAYS = 4 /* pipelines: none, one of class E, default, offload */
};

/** True if the graph of @seed has what a vendor library takes. */
#define OPEN_IS_FOR_VENDOR(seed) ((seed) % 4 == 1)

/** Counts over graphs. */
typedef struct OpenSeen {
    uint64_t graphs, varying;     /* all, and those with names */
    uint64_t programs[OPEN_WAYS]; /* with open dims */
    uint64_t open[OPEN_WAYS];     /* of them, compiled once for all shapes */
    uint64_t runs, instances;     /* of open programs at numbers of at least 1 */
    uint64_t zeros, with_zeros;   /* the same where a dim is 0 */
    uint64_t errors;              /* runs that fail as those of numbers do */
    uint64_t equal, close;        /* runs with equal bits, and those that a bound allows */
    uint64_t files;               /* runs of programs that were written and read */
    GHashTable *reasons;          /* char* → count of programs that are not open */
} OpenSeen;

/** Opens the graph of @subject and compiles it with each pipeline. Two sessions take the numbers of
 * tests/random/opened.h in two orders. Each output must have the bits of a program that was
 * compiled for these numbers, or a difference that passes of its pipeline allow. `offload` has
 * graphs for a vendor, which gets all that it takes. Errors must be the
 * same, but passes may remove one. Some programs are written to a file: what is read of it has the
 * same bits. */
gboolean open_agrees(uint64_t seed, Subject *subject, OpenSeen *seen, bool *fired, GError **error);
/** Prints counts. False where too many programs are not open. */
bool open_summarize(const OpenSeen *seen);
void open_seen_clear(OpenSeen *seen);

#endif
