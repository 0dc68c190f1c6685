/* SPDX-License-Identifier: Apache-2.0 */
/* Compares values of any type: sequences, optionals and maps item by item. */
#ifndef KILN_RUNTIME_TENSORS_ITEM_COMPARE_H
#define KILN_RUNTIME_TENSORS_ITEM_COMPARE_H

#include "graph/tensor.h"

/** A tensor of the elements of @item, a tensor, too. Numbers are shared with it. */
KilnTensor *kiln_item_as_tensor(KilnItem *item, GError **error);

/** kiln_tensor_compare() of any two values: of a sequence, optional or map, of each tensor in @got
 * with its like in @want. The message names it: "item 3: …". Entries of maps are alike by their
 * keys, in any order. */
gboolean kiln_value_compare(const KilnTensor *got, const KilnTensor *want, double rtol, double atol,
                            double *out_abs, double *out_rel, GError **error);

#endif
