/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3 for the instruction set of the file that includes this header. The library on the system is
 * built for the oldest processors. All give one digest. */
#ifndef KILN_RUNTIME_DIGEST_DIGEST_VECTOR_H
#define KILN_RUNTIME_DIGEST_DIGEST_VECTOR_H

#include <stddef.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(__x86_64__)
XXH128_hash_t kiln_digest_avx2(const void *data, size_t size);
XXH128_hash_t kiln_digest_avx512(const void *data, size_t size);
#endif

static inline XXH128_hash_t
kiln_digest_vector(const void *data, size_t size)
{
    return XXH3_128bits(size ? data : "", size);
}

#endif
