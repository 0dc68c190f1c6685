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

/** A copy of an instruction, whose operands get other types. In memory, its buffers, uses and
 * addresses follow it. */
typedef struct {
    KilnInstr instr;
    KilnBufferUse *uses;
    KilnBuffer *buffers;
    void **data;
} RefCopy;

size_t kiln_ref_instr_bytes(const KilnInstr *instr);
/** Makes a copy in @memory, which has kiln_ref_instr_bytes(). Addresses are left to the caller. */
RefCopy *kiln_ref_instr_copy(const KilnInstr *instr, void *memory);

/** Runs the plain kernel of an instruction on plain copies of its blocked operands. The padding of
 * its results becomes 0. @ref has the plain kernels. */
const char *kiln_ref_blocked(const KilnTarget *ref, const KilnKernelArgs *args);
bool kiln_ref_blocked_supports(const KilnTarget *ref, const KilnInstr *instr);
size_t kiln_ref_blocked_scratch(const KilnTarget *ref, const KilnInstr *instr, int threads);

#endif
