/* SPDX-License-Identifier: Apache-2.0 */
/* Strided operands, which lie in rows with gaps between them: which kernels take them, how far
 * apart their elements are. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_STRIDED_OPERANDS_H
#define KILN_BACKENDS_CPU_MOVEMENT_STRIDED_OPERANDS_H

#include "ir/target.h"

/** True where the kernel of @instr takes operand @i in @rows runs: takes_strided of every row. */
bool kiln_cpu_takes_strided(const KilnInstr *instr, uint32_t i, int64_t rows);

/** An operand as loops see it: pitch counts elements and means something where there are several
 * rows. */
typedef struct {
    const KilnType *type;
    int64_t rows, pitch;
} KilnCpuOperand;

/** Operand @i where it lies: strided only if its kernel takes that, else it is the dense copy. */
KilnCpuOperand kiln_cpu_operand(const KilnInstr *instr, uint32_t i);
/** Elements between neighbours along each dim. */
void kiln_cpu_strides(const KilnInstr *instr, uint32_t i, int64_t *strides);
/** Elements from the beginning of one of @n equal parts to that of the next, where @n is 1 or the
 * number of rows if there are several. */
int64_t kiln_cpu_pitch(const KilnInstr *instr, uint32_t i, int64_t n);

#endif
