/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator. A module's nodes, uses, names and attributes live in an arena and die with it.
 * Pieces are never freed singly and never move, so pointers to nodes stay valid while passes
 * rewrite. */
#ifndef KILN_GRAPH_ARENA_H
#define KILN_GRAPH_ARENA_H

#include <glib.h>
#include <stddef.h>

G_BEGIN_DECLS

typedef struct KilnArena KilnArena;

KilnArena *kiln_arena_new(void);
/** An arena whose pieces each begin on a cache line, for data that are read much more often than
 * made. */
KilnArena *kiln_arena_new_by_lines(void);
void kiln_arena_free(KilnArena *arena);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnArena, kiln_arena_free)

/** Frees @from and gives its big chunks to @to. So data that move between them need no new pages.
 */
void kiln_arena_replace(KilnArena *to, KilnArena *from);
/** Moves the spare chunks of @from to @to. */
void kiln_arena_take_spare(KilnArena *to, KilnArena *from);
/** Returns spare chunks to the system. */
void kiln_arena_trim(KilnArena *arena);

/** Allocates zeroed memory, aligned for any scalar. It never fails: see graph/grow/reserve.h. */
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
