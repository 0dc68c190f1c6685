/* SPDX-License-Identifier: Apache-2.0 */
/* Which loop of elementwise.h computes an instruction on f32. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_FIND_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_ELEMENTWISE_FIND_H

#include "backends/cpu/elementwise/elementwise.h"
#include "ir/instr.h"

/** The KilnCpuUnary of @kind, which has one operand, with these attributes; -1: there is none. */
int kiln_cpu_find_unary(KilnInstrKind kind, const void *attrs);
/** What its loop is called with. */
KilnCpuParams kiln_cpu_unary_params(KilnInstrKind kind, const void *attrs);
/** The KilnCpuBinary of @kind, where `sum` adds; -1: there is none. */
int kiln_cpu_find_binary(KilnInstrKind kind);
/** The KilnCpuCompare of @kind; -1: there is none. */
int kiln_cpu_find_compare(KilnInstrKind kind);
/** The KilnCpuUnary that is x to the power of @exponent; -1: there is none. */
int kiln_cpu_find_power(double exponent);

#endif
