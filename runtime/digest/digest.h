/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of content: what constants are found by in memory and on disk. XXH3 with 128 bits: fast,
 * and two contents have the same one by accident with a probability that does not matter; it is no
 * protection against somebody who makes two contents collide on purpose. */
#ifndef KILN_RUNTIME_DIGEST_DIGEST_H
#define KILN_RUNTIME_DIGEST_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t low, high;
} KilnDigest;

/** Of one piece of memory. */
KilnDigest kiln_digest(const void *data, size_t size);
/** Goes on with a further piece: the digest depends on the pieces, their sizes and their order. */
void kiln_digest_add(KilnDigest *digest, const void *data, size_t size);

static inline bool
kiln_digest_equal(const KilnDigest *a, const KilnDigest *b)
{
    return a->low == b->low && a->high == b->high;
}

#endif
