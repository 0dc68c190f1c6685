/* SPDX-License-Identifier: Apache-2.0 */
/* Extents as values: an i64 vector that holds the dims of a type, open ones included. */
#ifndef KILN_PASSES_QUERY_EXTENTS_H
#define KILN_PASSES_QUERY_EXTENTS_H

#include "graph/module.h"

/** True if each dim of @type is certainly 1 or more, but for dim @but, which is not asked (-1: all
 * are). */
bool kiln_dims_are_positive(const KilnType *type, int but);

/** True if a vector of the dims of @type can be made. An open dim is read from a value that has the
 * same dim: an argument of the functions around it, or what @near is computed from. Where @infer is
 * set, one dim that no such value has becomes -1, for a reshape. */
bool kiln_extents_can_build(const KilnFunction *function, KilnValue *near, const KilnType *type,
                            bool infer);
/** The vector, before @before; NULL without an error where kiln_extents_can_build() is false. */
KilnValue *kiln_extents_build(KilnFunction *function, KilnNode *before, KilnValue *near,
                              const KilnType *type, bool infer, GError **error);

/** The numbers from @start to before @limit, @step apart: scalars of one type. */
KilnValue *kiln_range_build(KilnNode *before, KilnValue *start, KilnValue *limit, KilnValue *step,
                            GError **error);

#endif
