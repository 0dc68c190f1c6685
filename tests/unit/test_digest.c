/* SPDX-License-Identifier: Apache-2.0 */
/* Files are checked on one processor by what was computed on another: all instruction sets give one
 * digest, that of XXH3. */
#include "runtime/digest/digest.h"
#include "runtime/digest/digest_vector.h"

#include "backends/cpu/isa.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum {
    LONGEST = 70000, /* beyond what is folded at a time, several times */
};

static void
expect_equal(KilnDigest found, KilnDigest expected, size_t size)
{
    cr_assert(kiln_digest_equal(&found, &expected), "of %zu bytes", size);
}

static KilnDigest
digest_of(XXH128_hash_t hash)
{
    return (KilnDigest){ hash.low64, hash.high64 };
}

static void
expect_one_digest(const unsigned char *data, size_t size)
{
    KilnDigest expected = digest_of(kiln_digest_vector(data, size));
    expect_equal(kiln_digest(data, size), expected, size);
#if defined(__x86_64__)
    if (kiln_cpu_isa_supported(KILN_CPU_ISA_AVX2))
        expect_equal(digest_of(kiln_digest_avx2(data, size)), expected, size);
    if (kiln_cpu_isa_supported(KILN_CPU_ISA_AVX512))
        expect_equal(digest_of(kiln_digest_avx512(data, size)), expected, size);
#endif
}

Test(digest, is_the_same_on_every_instruction_set)
{
    unsigned char *data = malloc(LONGEST + 1);
    for (size_t i = 0; i <= LONGEST; i++)
        data[i] = (unsigned char)(i * i >> 3 ^ i);
    for (size_t size = 0; size <= 3000; size++)
        expect_one_digest(data + size % 2, size); /* and at odd addresses */
    for (size_t size = 3001; size <= LONGEST; size += 1021)
        expect_one_digest(data, size);
    free(data);
}

/* What the specification of XXH3 says: files that are there stay readable. */
Test(digest, is_that_of_the_specification)
{
    expect_equal(kiln_digest(NULL, 0), (KilnDigest){ 0x6001c324468d497f, 0x99aa06d3014798d8 }, 0);
}

Test(digest, sees_every_byte)
{
    static unsigned char data[2048];
    const KilnDigest all = kiln_digest(data, sizeof data);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = 1;
        KilnDigest other = kiln_digest(data, sizeof data);
        cr_expect(!kiln_digest_equal(&other, &all), "byte %zu", i);
        data[i] = 0;
    }
}
