/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of content, to find constants in memory and on disk. XXH3 with 128 bits is fast, and
 * accidental collisions do not matter in practice. It does not protect against deliberate
 * collisions. */
#ifndef KILN_RUNTIME_DIGEST_DIGEST_H
#define KILN_RUNTIME_DIGEST_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t low, high;
} KilnDigest;

/** The digest of one piece of memory. */
KilnDigest kiln_digest(const void *data, size_t size);
/** Adds a piece. The digest depends on the pieces, their sizes and their order. */
void kiln_digest_add(KilnDigest *digest, const void *data, size_t size);

static inline bool
kiln_digest_equal(const KilnDigest *a, const KilnDigest *b)
{
    return a->low == b->low && a->high == b->high;
}

#endif
