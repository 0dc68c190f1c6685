/* SPDX-License-Identifier: Apache-2.0 */
/* The bump allocator: a list of chunks, the newest first. */
#include "graph/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <string.h>

enum {
    FIRST_CHUNK = 8 * 1024, /* chunks grow with the arena */
    LAST_CHUNK = 256 * 1024,
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
};

KilnArena *
kiln_arena_new(void)
{
    return g_new0(KilnArena, 1);
}

void
kiln_arena_free(KilnArena *arena)
{
    if (!arena)
        return;
    for (Chunk *chunk = arena->chunk; chunk;) {
        Chunk *older = chunk->older;
        g_free(chunk);
        chunk = older;
    }
    g_free(arena);
}

void *
kiln_arena_alloc(KilnArena *arena, size_t size)
{
    const size_t mask = alignof(max_align_t) - 1;
    size_t rounded = (size + mask) & ~mask;
    Chunk *chunk = arena->chunk;
    if (!chunk || chunk->size - chunk->used < rounded) {
        size_t room = CLAMP(arena->used, (size_t)FIRST_CHUNK, (size_t)LAST_CHUNK);
        room = MAX(rounded, room);
        chunk = g_malloc0(sizeof *chunk + room);
        chunk->size = room;
        chunk->older = arena->chunk;
        arena->chunk = chunk;
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
