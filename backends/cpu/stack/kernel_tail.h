/* SPDX-License-Identifier: Apache-2.0 */
/* The tail of an instruction as kernels on f32 compute it. */
#ifndef KILN_BACKENDS_CPU_STACK_KERNEL_TAIL_H
#define KILN_BACKENDS_CPU_STACK_KERNEL_TAIL_H

#include "backends/cpu/stack/tail.h"
#include "ir/tail.h"

/** True where there is a loop for the activation, and its parameters are numbers. */
bool kiln_cpu_tail_supports(const KilnInstr *instr);
KilnCpuTail kiln_cpu_tail_of(const KilnInstr *instr);

#endif
