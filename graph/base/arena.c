/* SPDX-License-Identifier: Apache-2.0 */
/* The bump allocator: a list of chunks, the newest first. */
#include "graph/arena.h"

#include "graph/grow/reserve.h"

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
    size_t room; /* what was asked for, of the chunk with its head */
    size_t size; /* of the bytes */
    size_t used;
    alignas(max_align_t) char bytes[];
} Chunk;

struct KilnArena {
    Chunk *chunk;
    Chunk *spare; /* big ones, to use before more are asked for */
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

static void
free_chunks(Chunk *chunk)
{
    while (chunk) {
        Chunk *older = chunk->older;
        free(chunk);
        chunk = older;
    }
}

void
kiln_arena_trim(KilnArena *arena)
{
    free_chunks(g_steal_pointer(&arena->spare));
}

void
kiln_arena_free(KilnArena *arena)
{
    if (!arena)
        return;
    kiln_arena_trim(arena);
    free_chunks(arena->chunk);
    g_free(arena);
}

/* An arena of some size lies in big pages where the system has them: walks over nodes jump about in
 * more small ones than the processor remembers. */
static Chunk *
new_huge_chunk(void)
{
    void *memory = kiln_try_aligned(HUGE, HUGE);
#ifdef MADV_HUGEPAGE
    if (memory)
        madvise(memory, HUGE, MADV_HUGEPAGE); /* a hint */
#endif
    return memory;
}

static bool
is_huge(const Chunk *chunk)
{
    return (uintptr_t)chunk % HUGE == 0 && chunk->room == HUGE;
}

static void
add_spare(KilnArena *arena, Chunk *chunk)
{
    chunk->older = arena->spare;
    arena->spare = chunk;
}

void
kiln_arena_take_spare(KilnArena *to, KilnArena *from)
{
    for (Chunk *chunk = g_steal_pointer(&from->spare); chunk;) {
        Chunk *older = chunk->older;
        add_spare(to, chunk);
        chunk = older;
    }
}

void
kiln_arena_replace(KilnArena *to, KilnArena *from)
{
    Chunk **link = &from->chunk;
    for (Chunk *chunk = *link; chunk; chunk = *link) {
        if (is_huge(chunk)) {
            *link = chunk->older;
            add_spare(to, chunk);
        } else {
            link = &chunk->older;
        }
    }
    kiln_arena_free(from);
}

static Chunk *
new_chunk(KilnArena *arena, size_t room)
{
    size_t slack = arena->alignment - alignof(max_align_t); /* what malloc() may be off */
    size_t whole = sizeof(Chunk) + slack;
    Chunk *chunk = NULL;
    if (room <= HUGE - whole && (arena->spare || arena->used >= HUGE)) {
        chunk = arena->spare;
        if (chunk)
            arena->spare = chunk->older;
        else
            chunk = new_huge_chunk();
    }
    if (chunk)
        room = HUGE - whole;
    else
        chunk = kiln_take(whole + room, "nodes and instructions");
    chunk->room = whole + room;
    chunk->used = -(uintptr_t)chunk->bytes & (arena->alignment - 1);
    chunk->size = chunk->used + room;
    chunk->older = arena->chunk;
    return chunk;
}

/* A chunk is not cleared as a whole: most modules are small and use little of their first chunks,
 * and of a big chunk caches would hold no line until it is handed out. */
static void *
take(KilnArena *arena, size_t size)
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
kiln_arena_alloc(KilnArena *arena, size_t size)
{
    return memset(take(arena, size), 0, size);
}

void *
kiln_arena_copy(KilnArena *arena, const void *data, size_t size)
{
    void *copy = take(arena, size);
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
