/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked layouts in the reference backend: moving elements between them, and running any kernel on
 * them by way of plain copies. */
#ifndef KILN_BACKENDS_REF_MOVEMENT_BLOCKED_H
#define KILN_BACKENDS_REF_MOVEMENT_BLOCKED_H

#include "backends/ref/kernel.h"

/** Writes the elements of @from to @to, which has the same dims in another layout; the padding of a
 * blocked @to is 0. The two must not overlap. False where a tag does not fit its type. */
bool kiln_ref_relayout_data(const KilnType *to_type, void *to, const KilnType *from_type,
                            const void *from);

/** True where no operand has a blocked layout. */
bool kiln_ref_is_plain(const KilnInstr *instr);

/** An instruction with blocked operands runs as its plain kernel does on plain copies of them, so
 * that it means the same; the padding of its results is 0. @ref has the plain kernels. */
const char *kiln_ref_blocked(const KilnTarget *ref, const KilnKernelArgs *args);
bool kiln_ref_blocked_supports(const KilnTarget *ref, const KilnInstr *instr);
size_t kiln_ref_blocked_scratch(const KilnTarget *ref, const KilnInstr *instr, int threads);

#endif
