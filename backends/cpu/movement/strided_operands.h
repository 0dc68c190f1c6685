/* SPDX-License-Identifier: Apache-2.0 */
/* Strided operands lie in rows with gaps between them. These functions tell which kernels take
 * them, and how far apart their elements are. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_STRIDED_OPERANDS_H
#define KILN_BACKENDS_CPU_MOVEMENT_STRIDED_OPERANDS_H

#include "ir/target.h"

/** True if the kernel of @instr takes operand @i in @rows rows: takes_strided of all kernels. */
bool kiln_cpu_takes_strided(const KilnInstr *instr, uint32_t i, int64_t rows);

/** An operand as loops see it. The pitch counts elements. It is set only if there are several
 * rows. */
typedef struct {
    const KilnType *type;
    int64_t rows, pitch;
} KilnCpuOperand;

/** Operand @i in place. It is strided only if its kernel takes that; else it is a dense copy. */
KilnCpuOperand kiln_cpu_operand(const KilnInstr *instr, uint32_t i);
/** Elements between neighbours along each dim. */
void kiln_cpu_strides(const KilnInstr *instr, uint32_t i, int64_t *strides);
/** Elements from the start of one of @n equal parts to the start of the next. If there are several
 * rows, @n must be 1 or their number. */
int64_t kiln_cpu_pitch(const KilnInstr *instr, uint32_t i, int64_t n);

#endif
