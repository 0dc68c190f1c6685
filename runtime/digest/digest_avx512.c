/* SPDX-License-Identifier: Apache-2.0 */
/* Digests with AVX-512. */
#include "runtime/digest/digest_vector.h"

XXH128_hash_t
kiln_digest_avx512(const void *data, size_t size)
{
    return kiln_digest_vector(data, size);
}
