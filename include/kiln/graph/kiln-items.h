/* SPDX-License-Identifier: Apache-2.0 */
/* Items: tensors, sequences, optionals and maps as values of their own, which callers make and
 * read. Inputs and outputs of these types are bound and read as items. Installed beside kiln.h,
 * which includes it.
 *
 * An item never changes once it is made, so threads may share it. It has owners, which are counted:
 * whoever makes one owns it, and lets go of it with kiln_item_unref(). */
#ifndef KILN_GRAPH_KILN_ITEMS_H
#define KILN_GRAPH_KILN_ITEMS_H

#include "graph/kiln-types.h"

#include <stdbool.h>

G_BEGIN_DECLS

/** A tensor of @rank dims. Copies the elements at @data, row-major and dense. Elements of type
 * string are addresses of texts, which are copied, too. @dims may be NULL for rank 0, and @data
 * where there is no element. NULL and KILN_ERROR_USAGE if @dtype is no element type or a dim is
 * negative, KILN_ERROR_LIMIT for more than 8 dims or too many bytes, KILN_ERROR_FORMAT for a string
 * that is not UTF-8, KILN_ERROR_MEMORY. */
KILN_API KilnItem *kiln_item_new_tensor(KilnDType dtype, int rank, const int64_t *dims,
                                        const void *data, GError **error);
/** A sequence of @n items, which it becomes an owner of. NULL and KILN_ERROR_USAGE unless all are
 * tensors of one element type or all are maps, KILN_ERROR_MEMORY. */
KILN_API KilnItem *kiln_item_new_sequence(KilnItem *const *items, size_t n, GError **error);
/** An optional that has @item, a tensor or a sequence, or nothing where @item is NULL. */
KILN_API KilnItem *kiln_item_new_optional(KilnItem *item, GError **error);
/** A map from the elements of @keys (i64 or string, of rank 1) to those of @values, as many. NULL
 * and KILN_ERROR_USAGE if they do not fit. */
KILN_API KilnItem *kiln_item_new_map(KilnItem *keys, KilnItem *values, GError **error);

/** One owner more; returns @item. NULL stays NULL. */
KILN_API KilnItem *kiln_item_ref(KilnItem *item);
/** One owner less; the last one frees it. Does nothing for NULL. */
KILN_API void kiln_item_unref(KilnItem *item);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnItem, kiln_item_unref)

/** KILN_DTYPE_sequence, KILN_DTYPE_optional, KILN_DTYPE_map, or the element type of a tensor. */
KILN_API KilnDType kiln_item_dtype(const KilnItem *item);
/** The number of items of a sequence; 0 or 1 for an optional; 2 for a map: its keys and values. 0
 * for a tensor. */
KILN_API size_t kiln_item_length(const KilnItem *item);
/** Item @i of those, which @item owns. NULL where there is none. */
KILN_API KilnItem *kiln_item_get(const KilnItem *item, size_t i);
/** The dims of a tensor, which @item owns; *@out_rank is their number. 0 dims for other items. */
KILN_API const int64_t *kiln_item_dims(const KilnItem *item, int *out_rank);
/** The elements of a tensor, row-major and dense, aligned to 64 bytes; NULL for other items. */
KILN_API const void *kiln_item_data(const KilnItem *item);
/** The bytes of these elements; 0 for other items. */
KILN_API size_t kiln_item_bytes(const KilnItem *item);
/** True if both have the same kind, shape and bits. Strings are compared as texts. */
KILN_API bool kiln_item_equal(const KilnItem *a, const KilnItem *b);

G_END_DECLS

#endif
