/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned memory for tests of kernels. It has the exact size, so that AddressSanitizer sees reads
 * and writes behind it. aligned_alloc() would round the size up to whole lines. */
#ifndef KILN_TESTS_UNIT_EXACT_MEMORY_H
#define KILN_TESTS_UNIT_EXACT_MEMORY_H

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdint.h>

/** Returns @bytes at a multiple of 64, uninitialised. Free them with free(). */
static inline void *
exact_memory(int64_t bytes)
{
    void *memory = memalign(64, bytes > 0 ? (size_t)bytes : 1);
    cr_assert_not_null(memory);
    return memory;
}

#endif
