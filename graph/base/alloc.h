/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates memory whose size comes from input. Sizes are checked for overflow, blocks are aligned,
 * and a failure is a GError, not an abort. Lists, tables, texts and nodes grow with a model. Their
 * memory comes from graph/grow: a reserve lasts until a checkpoint fails with the same error. Only
 * small blocks of GLib itself abort without memory: the heads of a GError and of a GBytes. */
#ifndef KILN_GRAPH_BASE_ALLOC_H
#define KILN_GRAPH_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILN_ALIGNMENT 64

enum {
    KILN_MAP_MIN = 1 << 17, /* a tensor of so many bytes or more has its own pages */
};

/** Rounds a byte count up to the alignment of tensors. SIZE_MAX on overflow. */
static inline size_t
kiln_align_up(size_t size)
{
    const size_t mask = KILN_ALIGNMENT - 1;
    return size > SIZE_MAX - mask ? SIZE_MAX : (size + mask) & ~mask;
}

/** Allocates @count × @size uninitialised bytes, aligned to KILN_ALIGNMENT. An empty request gets
 * one unit, so the result is a valid pointer. Fails with KILN_ERROR_MEMORY, which says that the
 * bytes were for @what. Free with kiln_free. */
void *kiln_alloc_for(const char *what, size_t count, size_t size, GError **error);
#define kiln_alloc(count, size, error) kiln_alloc_for("working memory", (count), (size), (error))

void kiln_free(void *memory);
/** Gives free memory between blocks that are in use back to the system, where the allocator can. It
 * takes a millisecond or so. */
void kiln_give_back(void);

/** Maps @size zero bytes on their own pages, for memory that is protected later. Fails with
 * KILN_ERROR_MEMORY, which names @what. Free with munmap(). */
void *kiln_map(const char *what, size_t size, GError **error);

/** Allocates the elements of a tensor: @count × @size bytes, aligned to KILN_ALIGNMENT. The caller
 * writes them through *@out_data before it shares the bytes. KILN_MAP_MIN bytes or more have their
 * own pages, which the last reference returns to the system. *@out_data is never NULL, even for 0
 * bytes. Fails with KILN_ERROR_MEMORY. */
GBytes *kiln_bytes_new(size_t count, size_t size, void **out_data, GError **error);

/** Makes @bytes read-only until they are freed, if they have their own pages. True if they are
 * read-only then. Only their maker calls this, after it has written them. */
bool kiln_bytes_seal(GBytes *bytes);

/** Keeps the pages of one freed tensor for the next one of its size. A caller that makes many such
 * tensors in turn asks the system for new pages only once. Threads may share it. */
typedef struct KilnRecycler KilnRecycler;
KilnRecycler *kiln_recycler_new(void);
/** Frees the kept pages. Pages of live tensors go to the system when these are freed. */
void kiln_recycler_free(KilnRecycler *recycler);
/** kiln_bytes_new() on the pages of @recycler, if the size fits. @recycler NULL: new pages. */
GBytes *kiln_bytes_recycle(KilnRecycler *recycler, size_t count, size_t size, void **out_data,
                           GError **error);

/** Bytes now held on their own pages; 0 under a sanitizer, which sees only its heap. */
size_t kiln_bytes_mapped(void);

/** For tests: allocation number @nth of this thread fails, counted from 1 at the next call. 0:
 * none. */
void kiln_alloc_inject_failure(unsigned nth);

/** For tests: the number of kiln_alloc and kiln_map calls of this thread so far. */
uint64_t kiln_alloc_count(void);

#endif
