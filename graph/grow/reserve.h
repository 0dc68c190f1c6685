/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for objects that grow with a model: nodes, lists, tables, texts.
 *
 * Code that adds a node to a list has no error to return. If the system refuses a request, the
 * request is served from a reserve: address space that was mapped beforehand and is now given back.
 * Nothing is lost, and the work goes on to the next checkpoint. The checkpoint maps the reserve
 * again. If the system refuses, the work ends with KILN_ERROR_MEMORY.
 *
 * A model, a program or a session holds the reserve while it lives. The reserve grows with the
 * model, so that the requests between two checkpoints fit. If they do not fit, the process aborts,
 * as it would in GLib.
 *
 * Texts and bytes may hold weights, for which no reserve is large enough. If the system refuses a
 * large request of theirs, they lose their content, and the next checkpoint fails. Whoever hands
 * content on asks kiln_reserve_check_lost() first. */
#ifndef KILN_GRAPH_GROW_RESERVE_H
#define KILN_GRAPH_GROW_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    KILN_LARGE_REQUEST = 1024 * 1024 /* bytes; the reserve has several times as many */
};

/** Allocates @size bytes; NULL for 0. The error of a checkpoint names @what. Free with g_free() or
 * free(). */
void *kiln_take(size_t size, const char *what) G_GNUC_MALLOC;
/** Allocates @count × @size zero bytes. */
void *kiln_take_zeros(size_t count, size_t size, const char *what) G_GNUC_MALLOC;
/** Resizes @memory to @size bytes. It may move. */
void *kiln_take_more(void *memory, size_t size, const char *what);
/** kiln_take_more() for content that may be lost. A request of more than KILN_LARGE_REQUEST bytes
 * is not served from the reserve: it returns NULL, leaves @memory as it is, and notes the loss. */
void *kiln_take_more_or_lose(void *memory, size_t size, const char *what);
/** Allocates @size bytes at a multiple of @alignment. NULL if the system has none: for callers that
 * can do with less. */
void *kiln_try_aligned(size_t alignment, size_t size);

/** Takes a hold on the reserve of the process. The first hold maps it. */
gboolean kiln_reserve_hold(GError **error);
/** Gives a hold back. The last one unmaps the reserve. */
void kiln_reserve_release(void);

/** A checkpoint: makes the reserve whole and large enough for a model of @n_nodes. Fails with
 * KILN_ERROR_MEMORY, which names the request that the system refused. */
gboolean kiln_reserve_check(size_t n_nodes, GError **error);

/** True if the reserve was used since the last checkpoint. */
bool kiln_reserve_is_touched(void);

/** True if the system has @size bytes now: for libraries that cannot survive a refusal. */
bool kiln_reserve_probe(size_t size);
/** Notes that library @what had no memory and went on with less. The next checkpoint of this thread
 * fails. */
void kiln_reserve_note_failure(const char *what);

/** Fails with KILN_ERROR_MEMORY if a text or bytes of this thread lost their content since its last
 * checkpoint. It does not look at the reserve. */
gboolean kiln_reserve_check_lost(GError **error);

/** A checkpoint for every step of a loop. It costs one load while there is memory. */
static inline gboolean
kiln_reserve_check_step(GError **error)
{
    return !kiln_reserve_is_touched() || kiln_reserve_check(0, error);
}

/** For tests: request number @nth of this thread is refused, counted from 1 at the next call; 0:
 * none. */
void kiln_reserve_inject_refusal(unsigned nth);
/** For tests: bytes of the reserve now. */
size_t kiln_reserve_size(void);

#endif
