/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of items, for whatever computes with them.
 *
 * A sequence is a part of a list of items, and several sequences may share the list:
 *
 *     list   a b c d . .      x = [a b c]     y = insert(x, end, d) = [a b c d]
 *            ^^^^^ x          z = erase(x, 0) = [b c]
 *            ^^^^^^^ y
 *              ^^^ z
 *
 * What is inserted behind the last item that the list has goes into the list itself, so appending
 * takes constant time in the mean. Any other change copies the addresses of a part.
 *
 * In a run the heap of texts (graph/texts.h) owns each item that a kernel makes. An iteration of a
 * loop lets go of what it made, except of what it carries on. */
#ifndef KILN_GRAPH_BASE_ITEM_H
#define KILN_GRAPH_BASE_ITEM_H

#include "graph/kiln-items.h"
#include "graph/texts.h"
#include "graph/type.h"

/** The item of an element: NULL for an empty one, and for the element that poison leaves, which has
 * all bits set. */
static inline KilnItem *
kiln_item_of(const void *element)
{
    KilnItem *const *item = element;
    return (uintptr_t)*item == UINTPTR_MAX ? NULL : *item;
}

/* --- makes items that @heap owns; NULL where it has no memory (kiln_text_heap_take_error()) --- */

/** Memory for @n addresses, to be freed with kiln_free(); NULL where there is none. */
void *kiln_item_scratch(KilnTextHeap *heap, size_t n);
/** A tensor of @type, which is static, whose elements the caller writes through *@out_data. Not for
 * strings. */
KilnItem *kiln_item_make_tensor(KilnTextHeap *heap, const KilnType *type, void **out_data);
/** A copy of the tensor at @data. */
KilnItem *kiln_item_make_copy(KilnTextHeap *heap, const KilnType *type, const void *data);
/** A sequence, optional or map of @n items. */
KilnItem *kiln_item_make_list(KilnTextHeap *heap, KilnDType dtype, KilnItem *const *items,
                              size_t n);
/** @sequence (NULL: the empty one) with @item in front of item @at. */
KilnItem *kiln_item_insert(KilnTextHeap *heap, const KilnItem *sequence, size_t at, KilnItem *item);
/** @sequence without item @at. */
KilnItem *kiln_item_erase(KilnTextHeap *heap, const KilnItem *sequence, size_t at);

/* --- what a heap owns --- */

/** How many items @heap owns so far; 0 for NULL. */
size_t kiln_item_mark(const KilnTextHeap *heap);
/** @heap lets go of the items that it came to own after @mark. */
void kiln_item_drop(KilnTextHeap *heap, size_t mark);
/** @heap takes one ownership of @item over from the caller. False where there is no memory for
 * that: then the caller still has it. */
bool kiln_item_give(KilnTextHeap *heap, KilnItem *item);

/* --- types --- */

/** The type of a tensor: static and plain. */
KilnType kiln_item_type(const KilnItem *item);
/** The type of any item, in @arena: the dims that its elements share are numbers. */
KilnType kiln_item_full_type(const KilnItem *item, KilnArena *arena);
/** The common type of elements of type @a and @b: dims that differ are not known. False if their
 * element types differ. Contents that are new lie in @arena. */
bool kiln_type_merge(KilnArena *arena, const KilnType *a, const KilnType *b, KilnType *out);
/** The rank of the tensors in @item, however deep: KILN_RANK_NONE where it has none,
 * KILN_RANK_UNKNOWN where they have several. @item NULL: an empty one. */
int kiln_item_element_rank(const KilnItem *item);
/** True for a sequence or optional of tensors, however deep, whose rank is not known. */
bool kiln_type_wants_element_rank(const KilnType *type);
/** @type with this rank of the tensors, whose dims are not known. */
KilnType kiln_type_with_element_rank(KilnArena *arena, const KilnType *type, int rank);
/** Fails with KILN_ERROR_TYPE or KILN_ERROR_SHAPE unless @item is of @type: @what, expected and
 * found. Dims that @type does not know may be any. */
gboolean kiln_item_check(const KilnItem *item, const KilnType *type, const char *what,
                         GError **error);

#endif
