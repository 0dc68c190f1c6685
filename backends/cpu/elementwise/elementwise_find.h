/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the loop of elementwise.h that computes an instruction on f32. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_FIND_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_FIND_H

#include "backends/cpu/elementwise/elementwise.h"
#include "ir/instr.h"

/** Returns the KilnCpuUnary of @kind with @attrs. @kind has one operand. -1 means no loop. */
int kiln_cpu_find_unary(KilnInstrKind kind, const void *attrs);
/** Returns the parameters of that loop. */
KilnCpuParams kiln_cpu_unary_params(KilnInstrKind kind, const void *attrs);
/** Returns the KilnCpuBinary of @kind, or -1. `sum` has the loop of `add`. */
int kiln_cpu_find_binary(KilnInstrKind kind);
/** Returns the KilnCpuCompare of @kind, or -1. */
int kiln_cpu_find_compare(KilnInstrKind kind);
/** Returns the KilnCpuUnary that computes x to the power of @exponent, or -1. */
int kiln_cpu_find_power(double exponent);

#endif
