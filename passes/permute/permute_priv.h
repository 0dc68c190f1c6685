/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for plans (passes/permute/permute.h) that the files of operators share. */
#ifndef KILN_PASSES_PERMUTE_PERMUTE_PRIV_H
#define KILN_PASSES_PERMUTE_PERMUTE_PRIV_H

#include "passes/permute/permute.h"

/** The type of operand @i of the node; NULL if there is no such operand. */
const KilnType *kiln_permuted_type(const KilnPermuted *plan, uint32_t i);
/** The field @name of the new attributes; NULL if the op has none. */
void *kiln_permuted_attr(const KilnPermuted *plan, const char *name);
/** Replaces operand @i by a vector of integers. */
void kiln_permuted_set_ints(KilnPermuted *plan, uint32_t i, KilnDType dtype, const int64_t *values,
                            uint32_t n);
/** Replaces operand @i by the dims of @type: integers, or what other values have. False where a dim
 * is not known there. @infer: one dim may be -1, for a reshape. Sets *@stated to whether none is.
 */
bool kiln_permuted_set_extents(KilnPermuted *plan, uint32_t i, const KilnType *type, bool infer,
                               bool *stated);
/** Plans operand 0, the only data operand of the op, and sets @perm to its permutation. False if it
 * has none. */
bool kiln_permuted_data(KilnPermuted *plan, KilnPerm *perm);

bool kiln_permute_plan_reduce(KilnPermuted *plan);
bool kiln_permute_plan_arg_reduce(KilnPermuted *plan);
bool kiln_permute_plan_gather(KilnPermuted *plan);
/** reshape, flatten, squeeze, unsqueeze. Merged dims must be neighbours before the transpose. */
bool kiln_permute_plan_reshape(KilnPermuted *plan);

#endif
