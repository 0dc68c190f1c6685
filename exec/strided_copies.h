/* SPDX-License-Identifier: Apache-2.0 */
/* The function that runs an instruction: its kernel, or one that runs it on dense copies. */
#ifndef KILN_EXEC_STRIDED_COPIES_H
#define KILN_EXEC_STRIDED_COPIES_H

#include "ir/kernel.h"

/** The function that runs @instr: the kernel itself, or one that runs it on dense copies. If there
 * is nothing to compute, the function does nothing. */
KilnKernelFn kiln_kernel_entry(const KilnKernel *kernel, const KilnInstr *instr);

#endif
