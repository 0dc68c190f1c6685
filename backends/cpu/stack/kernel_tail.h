/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the tail of an instruction to the tail that kernels on f32 compute. */
#ifndef KILN_BACKENDS_CPU_STACK_KERNEL_TAIL_H
#define KILN_BACKENDS_CPU_STACK_KERNEL_TAIL_H

#include "backends/cpu/stack/tail.h"
#include "ir/ir.h"

/** True if there is a loop for the activation and no parameter is NaN. */
bool kiln_cpu_tail_supports(const KilnInstr *instr);
KilnCpuTail kiln_cpu_tail_of(const KilnInstr *instr);

#endif
