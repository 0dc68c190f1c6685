/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions conv and conv_transpose as problems of conv.h. */
#ifndef KILN_BACKENDS_CPU_CONV_KERNEL_CONV_H
#define KILN_BACKENDS_CPU_CONV_KERNEL_CONV_H

#include "backends/cpu/conv/conv_problem.h"
#include "backends/cpu/kernel.h"

/** Types and attributes; @packed says whether the weights are. */
KilnCpuConv kiln_cpu_conv_problem(const KilnInstr *instr, bool packed);
/** Addresses: result, data, weights, bias, residual. */
KilnCpuConvArgs kiln_cpu_conv_arguments(const KilnKernelArgs *args);

#endif
