/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned allocation with errors, and its fault injection. */
#include "graph/alloc.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Per thread, so that concurrent sessions neither race on them nor see each other's injected
 * faults. */
static _Thread_local unsigned fail_at;
static _Thread_local uint64_t calls;

static bool
is_injected(void)
{
    calls++;
    return fail_at && --fail_at == 0;
}

void *
kiln_alloc(size_t count, size_t size, GError **error)
{
    size_t bytes = 0;
    bool overflow = __builtin_mul_overflow(count, size, &bytes);
    size_t aligned = overflow ? SIZE_MAX : kiln_align_up(bytes ? bytes : 1);
    void *memory =
        is_injected() || aligned == SIZE_MAX ? NULL : aligned_alloc(KILN_ALIGNMENT, aligned);
    if (!memory)
        kiln_throw(error, KILN_ERROR_MEMORY, "cannot allocate %zu × %zu bytes", count, size);
    return memory;
}

void *
kiln_map(size_t size, GError **error)
{
    void *memory = MAP_FAILED;
    if (!is_injected())
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    kiln_throw(error, KILN_ERROR_MEMORY, "cannot map %zu bytes", size);
    return NULL;
}

void
kiln_free(void *memory)
{
    free(memory);
}

GBytes *
kiln_bytes_take(void *memory, size_t size)
{
    return g_bytes_new_with_free_func(memory, size, kiln_free, memory);
}

void
kiln_alloc_inject_failure(unsigned nth)
{
    fail_at = nth;
}

uint64_t
kiln_alloc_count(void)
{
    return calls;
}
