/* SPDX-License-Identifier: Apache-2.0 */
/* The target of the cpu backend. Its kernels use the vector instructions of the machine and a team
 * of threads. */
#ifndef KILN_BACKENDS_CPU_CPU_H
#define KILN_BACKENDS_CPU_CPU_H

#include "ir/target.h"

/** Returns the cpu target. It lives for ever and has no fallback. Safe from any thread. */
const KilnTarget *kiln_cpu_target(void);

#endif
