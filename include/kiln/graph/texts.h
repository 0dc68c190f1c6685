/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type string: addresses of texts that nobody writes. NULL is the empty text.
 *
 * Who owns the texts: those of a tensor lie behind its elements, in the same block. Those that a
 * run makes lie in a heap, until the next run forgets them. Moving an element copies its address.
 */
#ifndef KILN_GRAPH_TEXTS_H
#define KILN_GRAPH_TEXTS_H

#include "graph/kiln-types.h"

#include <stdbool.h>

G_BEGIN_DECLS

/** The text of an element. The element that poison leaves, which has all bits set, is a text, too.
 */
KilnText kiln_text_of(const KilnText *element);
bool kiln_text_equal(const KilnText *a, const KilnText *b);
/** Below, equal to or above 0, in the order of bytes, which is that of code points. */
int kiln_text_compare(const KilnText *a, const KilnText *b);
uint64_t kiln_text_hash(const KilnText *element);
/** True if @length bytes at @text are UTF-8. Zeros are. */
bool kiln_text_is_utf8(const char *text, size_t length);
/** Fails with KILN_ERROR_FORMAT unless all of @n elements are UTF-8. @what names them. */
gboolean kiln_texts_check(const KilnText *const *elements, int64_t n, const char *what,
                          GError **error);

/** Copies @n elements and their texts into one block. The bytes are the elements, and hold the
 * texts. */
GBytes *kiln_texts_copy(const KilnText *const *elements, int64_t n, GError **error);
/** The same for @n elements that are all @element. */
GBytes *kiln_texts_repeat(const KilnText *element, int64_t n, GError **error);
/** The same for one element, from memory that does not fail and counts in no budget. */
GBytes *kiln_texts_own(const KilnText *element);
/** As files store elements: n + 1 offsets of 64 bits, from 0 on, then the bytes of all texts. */
GBytes *kiln_texts_store(const KilnText *const *elements, int64_t n, GError **error);
/** The elements that @bytes store, as kiln_texts_copy() makes them. KILN_ERROR_FORMAT where they do
 * not store @n texts of UTF-8. */
GBytes *kiln_texts_load(const void *bytes, size_t size, int64_t n, GError **error);

/** A place for the texts that a run makes, and for the items (graph/base/item.h). Threads may share
 * it as far as texts go. */
typedef struct KilnTextHeap KilnTextHeap;
KilnTextHeap *kiln_text_heap_new(void);
void kiln_text_heap_free(KilnTextHeap *heap);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnTextHeap, kiln_text_heap_free)
/** Forgets all texts and items. The memory of texts serves the next ones. */
void kiln_text_heap_reset(KilnTextHeap *heap);
/** The heap fails with KILN_ERROR_LIMIT above @bytes; 0: no limit. */
void kiln_text_heap_limit(KilnTextHeap *heap, int64_t bytes);
/** A text of @length bytes, which the caller writes through *@out_bytes before others see it. False
 * if the heap has no memory for it: kiln_text_heap_take_error() has the reason. */
bool kiln_text_new(KilnTextHeap *heap, size_t length, const KilnText **out, char **out_bytes);
/** A copy of @text. */
bool kiln_text_new_copy(KilnTextHeap *heap, const char *text, size_t length, const KilnText **out);
/** The reason of the first failure since the last call; NULL: none. @heap may be NULL. */
GError *kiln_text_heap_take_error(KilnTextHeap *heap);

G_END_DECLS

#endif
