/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the concurrency tests. These are plain C executables, because Criterion does not start
 * under ThreadSanitizer. */
#ifndef KILN_TESTS_CONCURRENCY_CONCURRENCY_H
#define KILN_TESTS_CONCURRENCY_CONCURRENCY_H

#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/** Fills @n floats from @seed. */
static inline void
fill(float *data, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        data[i] = (float)((i * 2654435761u + seed * 40503u) % 2000) / 1000 - 1;
}

#endif
