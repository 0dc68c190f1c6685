/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of f64 that need the mathematical library. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_REAL_FUNCTIONS_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_REAL_FUNCTIONS_H

#include "backends/cpu/elementwise/typed.h"
#include "ir/instr.h"

/** Returns the loop of @kind, or NULL if it is none of these functions. */
KilnCpuOneRow kiln_cpu_real_function(KilnInstrKind kind, const void *attrs);

#endif
