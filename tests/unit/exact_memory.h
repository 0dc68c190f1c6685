/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for tests of kernels, aligned as theirs is. It ends where it is said to end, so that
 * AddressSanitizer sees what is read or written behind it: aligned_alloc() takes whole lines. */
#ifndef KILN_TESTS_UNIT_EXACT_MEMORY_H
#define KILN_TESTS_UNIT_EXACT_MEMORY_H

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdint.h>

/** @bytes at a multiple of 64, uninitialised; free() frees them. */
static inline void *
exact_memory(int64_t bytes)
{
    void *memory = memalign(64, bytes > 0 ? (size_t)bytes : 1);
    cr_assert_not_null(memory);
    return memory;
}

#endif
