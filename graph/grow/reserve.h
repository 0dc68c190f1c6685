/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for what grows with a model: nodes, lists, tables, texts.
 *
 * Code that adds a node to a list has no error to return. So a request that the system refuses is
 * served from a reserve: address space that is mapped beforehand and given back to the system in
 * that moment. Nothing is lost, and the work goes on to the next checkpoint. The checkpoint maps
 * the reserve again; where the system refuses, the work ends with KILN_ERROR_MEMORY.
 *
 * A reserve is held while a model, a program or a session lives. It grows with the model, so that
 * what one pass adds between two checkpoints fits into it. Where it does not fit, the process
 * aborts, as it would in GLib. */
#ifndef KILN_GRAPH_GROW_RESERVE_H
#define KILN_GRAPH_GROW_RESERVE_H

#include "graph/error.h"

#include <stdbool.h>
#include <stddef.h>

/** @size bytes, or NULL for none; @what names them in the error of a checkpoint. Free with g_free()
 * or free(). */
void *kiln_take(size_t size, const char *what) G_GNUC_MALLOC;
/** @count × @size bytes of zeros. */
void *kiln_take_zeros(size_t count, size_t size, const char *what) G_GNUC_MALLOC;
/** @memory with room for @size bytes; it may move. */
void *kiln_take_more(void *memory, size_t size, const char *what);
/** @size bytes from a multiple of @alignment on; NULL where the system has none: for what can do
 * with less. */
void *kiln_try_aligned(size_t alignment, size_t size);

/** Takes a hold on the reserve of the process, and maps it for the first one. */
gboolean kiln_reserve_hold(GError **error);
/** Gives a hold back; the last one unmaps the reserve. */
void kiln_reserve_release(void);

/** A checkpoint: the reserve is whole and fits a model of @n_nodes, or this fails with
 * KILN_ERROR_MEMORY, which names what the system had no memory for. */
gboolean kiln_reserve_check(size_t n_nodes, GError **error);

/** Whether the reserve was used since the last checkpoint. */
bool kiln_reserve_is_touched(void);

/** Whether the system has @size bytes now: for libraries that do not survive where it has not. */
bool kiln_reserve_probe(size_t size);
/** A library had no memory, and went on with less than was asked of it: the next checkpoint of this
 * thread fails. @what names it. */
void kiln_reserve_note_failure(const char *what);

/** A checkpoint for every step of a loop: it costs a load where memory is there. */
static inline gboolean
kiln_reserve_check_step(GError **error)
{
    return !kiln_reserve_is_touched() || kiln_reserve_check(0, error);
}

/** For tests: from the next call on, request number @nth (counted from 1) of this thread is refused
 * as if the system had; 0 turns it off. */
void kiln_reserve_inject_refusal(unsigned nth);
/** For tests: bytes of the reserve now. */
size_t kiln_reserve_size(void);

#endif
