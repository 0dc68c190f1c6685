/* SPDX-License-Identifier: Apache-2.0 */
/* Makes random sequences, optionals and maps. */
#ifndef KILN_EXEC_RANDOM_ITEMS_H
#define KILN_EXEC_RANDOM_ITEMS_H

#include "graph/tensor.h"

enum {
    KILN_RANDOM_MIN_ITEMS = 2, /* of a sequence that is drawn */
};

/** Draws a tensor of the static @type. */
typedef KilnTensor *(*KilnRandomElementFn)(const KilnType *type, const char *name, uint64_t seed,
                                           GError **error);

/** Draws an item of @type: a sequence of two or three items, an optional that has one, or a map of
 * two or three keys. Tensors have rank 1 or 2 where their rank is not known, and 1 to 4 indices
 * along a dim that is not known. Those of one sequence have one shape. @seed and @name select the
 * stream. */
KilnItem *kiln_random_item(const KilnType *type, KilnRandomElementFn draw, const char *name,
                           uint64_t seed, GError **error);

#endif
