/* SPDX-License-Identifier: Apache-2.0 */
/* Why the cpu backend leaves some instructions on some types to ref, which takes up to a thousand
 * times as long as a fast kernel. */
#ifndef KILN_BACKENDS_CPU_LEFT_TO_REF_H
#define KILN_BACKENDS_CPU_LEFT_TO_REF_H

#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "ir/target.h"

/** True if @cpu has a kernel of its own for @kind on @dtype, in some form. */
bool kiln_cpu_has_kernel(const KilnTarget *cpu, KilnInstrKind kind, KilnDType dtype);
/** The reason that left_to_ref.def states; NULL if there is none. */
const char *kiln_cpu_left_to_ref(const KilnTarget *cpu, KilnInstrKind kind, KilnDType dtype);

#endif
