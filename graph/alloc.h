/* SPDX-License-Identifier: Apache-2.0 */
/* Memory whose size comes from input: checked for overflow, aligned, and failing with a GError
 * instead of an abort. Small bookkeeping uses GLib, which aborts when memory runs out. */
#ifndef KILN_GRAPH_ALLOC_H
#define KILN_GRAPH_ALLOC_H

#include "graph/error.h"

#include <stddef.h>
#include <stdint.h>

#define KILN_ALIGNMENT 64

/** Rounds a byte count up to the alignment of tensors; SIZE_MAX where that overflows. */
static inline size_t
kiln_align_up(size_t size)
{
    const size_t mask = KILN_ALIGNMENT - 1;
    return size > SIZE_MAX - mask ? SIZE_MAX : (size + mask) & ~mask;
}

/** Allocates @count × @size bytes aligned to KILN_ALIGNMENT, uninitialised; at least one unit, so
 * that the result of an empty request is a valid pointer. Fails with KILN_ERROR_MEMORY. Free with
 * kiln_free. */
void *kiln_alloc(size_t count, size_t size, GError **error);

void kiln_free(void *memory);

/** @size bytes of pages of their own, zeros: for memory that is protected later. Fails with
 * KILN_ERROR_MEMORY. Free with munmap(). */
void *kiln_map(size_t size, GError **error);

/** Wraps memory of kiln_alloc in GBytes, which free it. */
GBytes *kiln_bytes_take(void *memory, size_t size);

/** For tests: from the next call on, allocation number @nth (counted from 1) of this thread fails;
 *  0 turns injection off. */
void kiln_alloc_inject_failure(unsigned nth);

/** For tests: the number of kiln_alloc and kiln_map calls of this thread so far. */
uint64_t kiln_alloc_count(void);

#endif
