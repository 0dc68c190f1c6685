/* SPDX-License-Identifier: Apache-2.0 */
/* Digests with AVX2. */
#include "runtime/digest_vector.h"

KilnDigest
kiln_digest_avx2(const void *data, size_t size)
{
    return kiln_digest_vector(data, size);
}
