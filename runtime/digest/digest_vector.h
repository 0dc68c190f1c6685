/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3 as the compiler of the file that includes this makes it for that file's instruction set: the
 * library on the system is built for the oldest processor that it may meet. All give one digest. */
#ifndef KILN_RUNTIME_DIGEST_DIGEST_VECTOR_H
#define KILN_RUNTIME_DIGEST_DIGEST_VECTOR_H

#include <stddef.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

XXH128_hash_t kiln_digest_avx2(const void *data, size_t size);
XXH128_hash_t kiln_digest_avx512(const void *data, size_t size);

static inline XXH128_hash_t
kiln_digest_vector(const void *data, size_t size)
{
    return XXH3_128bits(size ? data : "", size);
}

#endif
