/* SPDX-License-Identifier: Apache-2.0 */
/* The bump allocator: a list of chunks, the newest first. */
#include "graph/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FIRST_CHUNK = 8 * 1024, /* chunks grow with the arena */
    LAST_CHUNK = 256 * 1024,
    HUGE = 2 * 1024 * 1024,
    LINE = 64, /* of a cache */
};

typedef struct Chunk {
    struct Chunk *older;
    size_t size;
    size_t used;
    alignas(max_align_t) char bytes[];
} Chunk;

struct KilnArena {
    Chunk *chunk;
    size_t used;
    size_t alignment;
};

static KilnArena *
new_aligned(size_t alignment)
{
    KilnArena *arena = g_new0(KilnArena, 1);
    arena->alignment = alignment;
    return arena;
}

KilnArena *
kiln_arena_new(void)
{
    return new_aligned(alignof(max_align_t));
}

KilnArena *
kiln_arena_new_by_lines(void)
{
    return new_aligned(LINE);
}

void
kiln_arena_free(KilnArena *arena)
{
    if (!arena)
        return;
    for (Chunk *chunk = arena->chunk; chunk;) {
        Chunk *older = chunk->older;
        free(chunk); /* also what g_malloc0() gave */
        chunk = older;
    }
    g_free(arena);
}

/* An arena of some size lies in big pages where the system has them: walks over nodes jump about in
 * more small ones than the processor remembers. */
static Chunk *
new_huge_chunk(void)
{
    void *memory = NULL;
    if (posix_memalign(&memory, HUGE, HUGE) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, HUGE, MADV_HUGEPAGE); /* a hint */
#endif
    return memset(memory, 0, HUGE);
}

static Chunk *
new_chunk(const KilnArena *arena, size_t room)
{
    size_t slack = arena->alignment - alignof(max_align_t); /* what g_malloc() may be off */
    size_t whole = sizeof(Chunk) + slack;
    bool huge = arena->used >= HUGE && room <= HUGE - whole;
    if (huge)
        room = HUGE - whole;
    Chunk *chunk = huge ? new_huge_chunk() : g_malloc0(whole + room);
    if (!chunk)
        g_error("no memory for %u bytes", HUGE); /* as g_malloc0() does */
    chunk->used = -(uintptr_t)chunk->bytes & (arena->alignment - 1);
    chunk->size = chunk->used + room;
    chunk->older = arena->chunk;
    return chunk;
}

void *
kiln_arena_alloc(KilnArena *arena, size_t size)
{
    const size_t mask = arena->alignment - 1;
    size_t rounded = (size + mask) & ~mask;
    Chunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < rounded) {
        size_t room = CLAMP(arena->used, (size_t)FIRST_CHUNK, (size_t)LAST_CHUNK);
        chunk = arena->chunk = new_chunk(arena, MAX(rounded, room));
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    arena->used += rounded;
    return memory;
}

void *
kiln_arena_copy(KilnArena *arena, const void *data, size_t size)
{
    void *copy = kiln_arena_alloc(arena, size);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

char *
kiln_arena_strdup(KilnArena *arena, const char *text)
{
    return text ? kiln_arena_copy(arena, text, strlen(text) + 1) : NULL;
}

char *
kiln_arena_printf(KilnArena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_arena_strdup(arena, text);
}

size_t
kiln_arena_used(const KilnArena *arena)
{
    return arena->used;
}
