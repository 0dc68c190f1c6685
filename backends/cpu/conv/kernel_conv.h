/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the instructions conv and conv_transpose into problems (conv_problem.h). */
#ifndef KILN_BACKENDS_CPU_CONV_KERNEL_CONV_H
#define KILN_BACKENDS_CPU_CONV_KERNEL_CONV_H

#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/kernel.h"
#include "ir/kernel.h"

/** The problem of @instr, with plain weights. */
KilnCpuConv kiln_cpu_conv_problem(const KilnInstr *instr);
/** The addresses of result, data, weights, bias and residual. */
KilnCpuConvArgs kiln_cpu_conv_arguments(const KilnKernelArgs *args);

#endif
