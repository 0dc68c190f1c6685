/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a vendor library computes parts of, against the reference. */
#ifndef KILN_TESTS_RANDOM_OFFLOAD_H
#define KILN_TESTS_RANDOM_OFFLOAD_H

#include "tests/random/subject.h"

/** What programs were made of: graphs that had any such thing. */
typedef struct OffloadSeen {
    uint64_t graphs; /* all of them */
    uint64_t regions, merges, customs;
    uint64_t layouts;  /* kept between regions */
    uint64_t winograd; /* of own kernels, beside the vendor's */
    uint64_t refused;  /* operators, by failures that were injected */
    uint64_t saved;    /* programs */
} OffloadSeen;

/** Compiles @subject's module with as much as possible left to the vendor, with times deciding, one
 * operator a region, for little memory, and with a vendor that refuses operators at random; of half
 * of the graphs some constants are given from outside. Results are those of the reference within
 * class U; for any number of threads, and of a program that was saved and loaded, they have the
 * same bits. @seen may be NULL. *@fired tells whether the vendor computed anything. */
gboolean offload_agrees(uint64_t seed, Subject *subject, OffloadSeen *seen, bool *fired,
                        GError **error);

#endif
