/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend: vectorised kernels on a team of threads, chosen by the instruction set of the
 * machine. */
#ifndef KILN_BACKENDS_CPU_CPU_H
#define KILN_BACKENDS_CPU_CPU_H

#include "ir/target.h"

/** The cpu target; it lives for ever and has no fallback. Safe from any thread. */
const KilnTarget *kiln_cpu_target(void);

#endif
