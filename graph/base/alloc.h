/* SPDX-License-Identifier: Apache-2.0 */
/* Memory whose size comes from input: checked for overflow, aligned, and failing with a GError
 * instead of an abort. What grows with the nodes of a model (lists, tables, texts, the nodes
 * themselves) comes from graph/grow, whose reserve lasts until a checkpoint fails with the same
 * error. Only blocks that GLib takes for itself abort where memory runs out: an error, a GBytes,
 * json-glib's reports. */
#ifndef KILN_GRAPH_BASE_ALLOC_H
#define KILN_GRAPH_BASE_ALLOC_H

#include "graph/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILN_ALIGNMENT 64

enum {
    KILN_MAP_MIN = 1 << 17, /* bytes of a tensor from which on it has pages of its own */
};

/** Rounds a byte count up to the alignment of tensors; SIZE_MAX where that overflows. */
static inline size_t
kiln_align_up(size_t size)
{
    const size_t mask = KILN_ALIGNMENT - 1;
    return size > SIZE_MAX - mask ? SIZE_MAX : (size + mask) & ~mask;
}

/** Allocates @count × @size bytes aligned to KILN_ALIGNMENT, uninitialised; at least one unit, so
 * that the result of an empty request is a valid pointer. Fails with KILN_ERROR_MEMORY, which says
 * that the bytes were for @what. Free with kiln_free. */
void *kiln_alloc_for(const char *what, size_t count, size_t size, GError **error);
#define kiln_alloc(count, size, error) kiln_alloc_for("working memory", (count), (size), (error))

void kiln_free(void *memory);

/** @size bytes of pages of their own, zeros: for memory that is protected later. Fails with
 * KILN_ERROR_MEMORY, which says that they were for @what. Free with munmap(). */
void *kiln_map(const char *what, size_t size, GError **error);

/** @count × @size bytes aligned to KILN_ALIGNMENT, which the caller writes through *@out_data
 * before anyone else has them: the elements of a tensor. KILN_MAP_MIN bytes or more are pages of
 * their own, which go back to the system with the last reference; a heap would keep them.
 * *@out_data is no NULL where there is nothing to write. Fails with KILN_ERROR_MEMORY. */
GBytes *kiln_bytes_new(size_t count, size_t size, void **out_data, GError **error);

/** Makes @bytes read-only where they are pages of their own and all of them, and says whether they
 * are: who made them has written them, nobody else may. They stay so until they are freed. */
bool kiln_bytes_seal(GBytes *bytes);

/** Keeps the pages of one tensor that was freed for the next one of its size: work that makes many
 * of them after each other asks the system for new pages once. Threads may share it. */
typedef struct KilnRecycler KilnRecycler;
KilnRecycler *kiln_recycler_new(void);
/** Gives back what is kept; pages of tensors that still live go to the system when they are freed.
 */
void kiln_recycler_free(KilnRecycler *recycler);
/** kiln_bytes_new() from pages that @recycler keeps, where they have the size; NULL: from new ones.
 */
GBytes *kiln_bytes_recycle(KilnRecycler *recycler, size_t count, size_t size, void **out_data,
                           GError **error);

/** Bytes of all that are pages of their own now; 0 under a sanitizer, which sees only its heap. */
size_t kiln_bytes_mapped(void);

/** For tests: from the next call on, allocation number @nth (counted from 1) of this thread fails;
 *  0 turns injection off. */
void kiln_alloc_inject_failure(unsigned nth);

/** For tests: the number of kiln_alloc and kiln_map calls of this thread so far. */
uint64_t kiln_alloc_count(void);

#endif
