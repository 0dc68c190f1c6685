/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3 as the compiler of the file that includes this makes it for that file's instruction set: the
 * library on the system is built for the oldest processor that it may meet. All give one digest. */
#ifndef KILN_RUNTIME_DIGEST_VECTOR_H
#define KILN_RUNTIME_DIGEST_VECTOR_H

#include "runtime/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

KilnDigest kiln_digest_avx2(const void *data, size_t size);
KilnDigest kiln_digest_avx512(const void *data, size_t size);

static inline KilnDigest
kiln_digest_vector(const void *data, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(size ? data : "", size);
    return (KilnDigest){ hash.low64, hash.high64 };
}

#endif
