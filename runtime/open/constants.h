/* SPDX-License-Identifier: Apache-2.0 */
/* Fold functions of open programs. A template has a folder with open functions. An instance has a
 * copy of it for its numbers, and makes another one when it moves.
 *
 * An entry of the constant cache is found by the text of the functions at these numbers, by the
 * packings and by the bytes of the inputs. So numbers that no function and no packing depends on
 * find the entry of other shapes. */
#ifndef KILN_RUNTIME_OPEN_CONSTANTS_H
#define KILN_RUNTIME_OPEN_CONSTANTS_H

#include "graph/binding.h"
#include "runtime/fold_calls.h"

/** @open, a folder of an open program, at the numbers of @binding. It belongs to the caller and
 * must not outlive @open. Packings are to be added. */
KilnFolder *kiln_folder_at(KilnFolder *open, const KilnDimBinding *binding, GError **error);
/** Whether @a and @b, which have all their packings, find the same entry for the same inputs. */
bool kiln_folder_is_same(KilnFolder *a, KilnFolder *b);

#endif
