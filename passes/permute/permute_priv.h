/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of plans (passes/permute/permute.h) that the files of operators share. */
#ifndef KILN_PASSES_PERMUTE_PERMUTE_PRIV_H
#define KILN_PASSES_PERMUTE_PERMUTE_PRIV_H

#include "passes/permute/permute.h"

/** Type and known integers of operand @i of the node; NULL where there are none. */
const KilnType *kiln_permuted_type(const KilnPermuted *plan, uint32_t i);
const KilnKnown *kiln_permuted_known(const KilnPermuted *plan, uint32_t i);
/** The field of the new attributes that is called @name; NULL where the op has none. */
void *kiln_permuted_attr(const KilnPermuted *plan, const char *name);
/** Operand @i becomes a vector of integers. */
void kiln_permuted_set_ints(KilnPermuted *plan, uint32_t i, KilnDType dtype, const int64_t *values,
                            uint32_t n);
/** Plans operand 0 as the one operand of data that an op has, and says what it is a transpose by;
 * false where it is none. */
bool kiln_permuted_data(KilnPermuted *plan, KilnPerm *perm);

bool kiln_permute_plan_reduce(KilnPermuted *plan);
bool kiln_permute_plan_arg_reduce(KilnPermuted *plan);
bool kiln_permute_plan_gather(KilnPermuted *plan);
/** reshape, flatten, squeeze, unsqueeze: legal where no run mixes dims that stand apart. */
bool kiln_permute_plan_reshape(KilnPermuted *plan);

#endif
