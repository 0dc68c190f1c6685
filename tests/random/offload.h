/* SPDX-License-Identifier: Apache-2.0 */
/* Compares programs that use a vendor library with the reference. */
#ifndef KILN_TESTS_RANDOM_OFFLOAD_H
#define KILN_TESTS_RANDOM_OFFLOAD_H

#include "tests/random/subject.h"

/** Counts graphs, by parts that their programs had. */
typedef struct OffloadSeen {
    uint64_t graphs; /* all of them */
    uint64_t regions, merges, customs;
    uint64_t layouts;  /* kept between regions */
    uint64_t winograd; /* own kernels, beside the vendor's */
    uint64_t refused;  /* operators, by injected failures */
    uint64_t saved;    /* programs that were saved */
} OffloadSeen;

/** Compiles the module of @subject in five ways: the vendor takes all it can, times decide,
 * each operator is a region, memory is saved, or the vendor refuses operators at random. Half of
 * the graphs get some constants from outside. Results must be within class U of the reference.
 * Their bits must not depend on the number of threads, nor on saving and loading the program. @seen
 * may be NULL. *@fired tells whether the vendor computed anything. */
gboolean offload_agrees(uint64_t seed, Subject *subject, OffloadSeen *seen, bool *fired,
                        GError **error);

#endif
