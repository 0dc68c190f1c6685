/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked layouts in the reference backend. Moves elements between layouts. Runs any kernel on
 * plain copies of blocked operands. */
#ifndef KILN_BACKENDS_REF_MOVEMENT_BLOCKED_H
#define KILN_BACKENDS_REF_MOVEMENT_BLOCKED_H

#include "backends/ref/kernel.h"
#include "ir/target.h"

/** Copies the elements of @from to @to, which has the same dims in another layout. The padding of
 * a blocked @to becomes 0. The two must not overlap. False if a tag does not fit its type. */
bool kiln_ref_relayout_data(const KilnType *to_type, void *to, const KilnType *from_type,
                            const void *from);

/** True if no operand has a blocked layout. */
bool kiln_ref_is_plain(const KilnInstr *instr);

/** Runs the plain kernel of an instruction on plain copies of its blocked operands. The padding of
 * its results becomes 0. @ref has the plain kernels. */
const char *kiln_ref_blocked(const KilnTarget *ref, const KilnKernelArgs *args);
bool kiln_ref_blocked_supports(const KilnTarget *ref, const KilnInstr *instr);
size_t kiln_ref_blocked_scratch(const KilnTarget *ref, const KilnInstr *instr, int threads);

#endif
