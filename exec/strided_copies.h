/* SPDX-License-Identifier: Apache-2.0 */
/* The function that runs an instruction: its kernel, or one that runs it on dense copies. */
#ifndef KILN_EXEC_STRIDED_COPIES_H
#define KILN_EXEC_STRIDED_COPIES_H

#include "ir/kernel.h"

/** What runs @instr: the kernel itself, a function that runs it on such copies, or one that does
 * nothing where there is nothing to compute. */
KilnKernelFn kiln_kernel_entry(const KilnKernel *kernel, const KilnInstr *instr);

#endif
