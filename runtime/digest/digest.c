/* SPDX-License-Identifier: Apache-2.0 */
/* Digests by xxHash, on the instruction set that kernels run on. */
#include "runtime/digest/digest.h"

#include "backends/cpu/isa.h"
#include "runtime/digest/digest_vector.h"

static XXH128_hash_t
hash_of(const void *data, size_t size)
{
#if defined(__x86_64__)
    switch (kiln_cpu_isa_best()) {
    case KILN_CPU_ISA_AVX512:
        return kiln_digest_avx512(data, size);
    case KILN_CPU_ISA_AVX2:
        return kiln_digest_avx2(data, size);
    default:
        break;
    }
#endif
    return kiln_digest_vector(data, size);
}

KilnDigest
kiln_digest(const void *data, size_t size)
{
    XXH128_hash_t hash = hash_of(data, size);
    return (KilnDigest){ hash.low64, hash.high64 };
}

void
kiln_digest_add(KilnDigest *digest, const void *data, size_t size)
{
    KilnDigest piece = kiln_digest(data, size);
    const uint64_t both[5] = { digest->low, digest->high, piece.low, piece.high, size };
    *digest = kiln_digest(both, sizeof both);
}
