/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend: one naive kernel per instruction. These kernels define the instructions.
 * Every other backend and every pass is compared to them. */
#ifndef KILN_BACKENDS_REF_REF_H
#define KILN_BACKENDS_REF_REF_H

#include "ir/target.h"

/** Returns the reference target. It is static and has no fallback. */
const KilnTarget *kiln_ref_target(void);

#endif
