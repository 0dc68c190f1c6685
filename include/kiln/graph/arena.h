/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator: what a module owns (nodes, uses, names, attributes) lives in one and dies with
 * it. Pieces are never freed singly and never move, so pointers to nodes stay valid while passes
 * rewrite. */
#ifndef KILN_GRAPH_ARENA_H
#define KILN_GRAPH_ARENA_H

#include <glib.h>
#include <stddef.h>

G_BEGIN_DECLS

typedef struct KilnArena KilnArena;

KilnArena *kiln_arena_new(void);
/** One whose pieces each begin with a line of the caches, for what is read much more often than
 * made. */
KilnArena *kiln_arena_new_by_lines(void);
void kiln_arena_free(KilnArena *arena);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnArena, kiln_arena_free)

/** Frees @from, whose big chunks @to uses before it asks for more: what moves from one to the other
 * need not wait for pages of the system. */
void kiln_arena_replace(KilnArena *to, KilnArena *from);
/** Leaves to @to what @from keeps to use later. */
void kiln_arena_take_spare(KilnArena *to, KilnArena *from);
/** Gives back to the system what is kept to use later. */
void kiln_arena_trim(KilnArena *arena);

/** Zeroed memory aligned for any scalar; never NULL, see graph/grow/reserve.h. */
void *kiln_arena_alloc(KilnArena *arena, size_t size);
void *kiln_arena_copy(KilnArena *arena, const void *data, size_t size);
char *kiln_arena_strdup(KilnArena *arena, const char *text);
char *kiln_arena_printf(KilnArena *arena, const char *format, ...) G_GNUC_PRINTF(2, 3);

#define kiln_arena_new0(arena, Type, n)                                                            \
    ((Type *)kiln_arena_alloc((arena), sizeof(Type) * (size_t)(n)))

/** Bytes handed out so far. */
size_t kiln_arena_used(const KilnArena *arena);

G_END_DECLS

#endif
