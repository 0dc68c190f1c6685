/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of this build. */
#ifndef KILN_RUNTIME_TARGETS_H
#define KILN_RUNTIME_TARGETS_H

#include "ir/target.h"

#include <stdbool.h>

/** kiln_target_by_name(). Without @offload the target has its own kernels only. */
const KilnTarget *kiln_target_choose(const char *name, bool offload, GError **error);
/** "cpu", "ref"; NULL and KILN_ERROR_USAGE for others. */
const KilnTarget *kiln_target_by_name(const char *name, GError **error);

/** Processors that this process may use. */
int kiln_processor_count(void);

#endif
