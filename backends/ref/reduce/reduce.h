/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of floats that read each element once, one by one. For reduce_*, the global pools, and
 * stacks that end with them. */
#ifndef KILN_BACKENDS_REF_REDUCE_REDUCE_H
#define KILN_BACKENDS_REF_REDUCE_REDUCE_H

#include "ir/ir.h"

/** Returns the value of an empty group, before it is finished. */
double kiln_ref_fold_start(KilnInstrKind kind);
double kiln_ref_fold(KilnInstrKind kind, double folded, double x);
/** Returns the result of a group of @count elements, before it is rounded to its type. */
double kiln_ref_fold_finish(KilnInstrKind kind, double folded, int64_t count);

#endif
