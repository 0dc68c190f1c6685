/* SPDX-License-Identifier: Apache-2.0 */
/* Digests by xxHash. */
#include "runtime/digest.h"

#include <xxhash.h>

KilnDigest
kiln_digest(const void *data, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(size ? data : "", size);
    return (KilnDigest){ hash.low64, hash.high64 };
}

void
kiln_digest_add(KilnDigest *digest, const void *data, size_t size)
{
    KilnDigest piece = kiln_digest(data, size);
    const uint64_t both[5] = { digest->low, digest->high, piece.low, piece.high, size };
    *digest = kiln_digest(both, sizeof both);
}
