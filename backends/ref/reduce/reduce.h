/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of floats that meet each element once, element by element: what reduce_* and the
 * global pools do, and stacks that end with them. */
#ifndef KILN_BACKENDS_REF_REDUCE_REDUCE_H
#define KILN_BACKENDS_REF_REDUCE_REDUCE_H

#include "ir/ir.h"

/** What an empty group comes to, before it is finished. */
double kiln_ref_fold_start(KilnInstrKind kind);
double kiln_ref_fold(KilnInstrKind kind, double folded, double x);
/** The result of a group of @count elements, before it is rounded to its type. */
double kiln_ref_fold_finish(KilnInstrKind kind, double folded, int64_t count);

#endif
