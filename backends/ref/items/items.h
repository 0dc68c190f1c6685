/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of sequences, optionals and maps share. Kernels read items and make new ones, which
 * the heap of the run owns. A tensor that goes in is copied, and so is one that comes out. */
#ifndef KILN_BACKENDS_REF_ITEMS_ITEMS_H
#define KILN_BACKENDS_REF_ITEMS_ITEMS_H

#include "backends/ref/kernel.h"
#include "graph/base/item.h"
#include "graph/kiln-types.h"
#include "ir/kernel.h"

static const char ref_no_items[] = "no memory for sequences";

/** The item in operand @i; NULL: an empty one. */
static inline KilnItem *
ref_item(const KilnKernelArgs *args, uint32_t i)
{
    return kiln_item_of(args->data[i]);
}

/** Writes @item (NULL: it could not be made) to operand 0. */
static inline const char *
ref_give_item(const KilnKernelArgs *args, KilnItem *item)
{
    if (!item)
        return ref_no_items;
    *(KilnItem **)args->data[0] = item;
    return NULL;
}

/** The value of operand @i as an item: a copy of a tensor, or the item that it is. */
KilnItem *kiln_ref_as_item(const KilnKernelArgs *args, uint32_t i);
/** Writes the tensor @item to operand 0, or the item itself where the operand is one. */
const char *kiln_ref_take_out(const KilnKernelArgs *args, const KilnItem *item);
/** Copies @n elements of @dtype from @from. Strings become texts of the run. False: no memory. */
bool kiln_ref_copy_elements(const KilnKernelArgs *args, KilnDType dtype, void *to, const void *from,
                            int64_t n);

#endif
