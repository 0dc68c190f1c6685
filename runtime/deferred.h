/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a loaded program. The file has all facts for binding. The vendor compiles each region
 * when it runs for the first time. */
#ifndef KILN_RUNTIME_DEFERRED_H
#define KILN_RUNTIME_DEFERRED_H

#include "ir/target.h"
#include "runtime/program_file.h"

/** The record of the call @instr of @kernel in a file, without the place of its scratch. */
KilnStoredCall kiln_stored_call(const KilnInstr *instr, const KilnKernel *kernel, int threads);
/** One byte per operand of the call @instr: 1 if @kernel packs it, else 0. */
GBytes *kiln_stored_operands(const KilnInstr *instr, const KilnKernel *kernel);

/** Gives kernels from @file to the calls of the entry of @ir, as far as @file lists them. In the
 * first run of such a kernel @target's vendor compiles the body. The run fails if the result
 * differs from the file, so no unplanned memory is touched. Thread-safe then. */
gboolean kiln_defer_regions(KilnIRModule *ir, const KilnProgramFile *file, const KilnTarget *target,
                            GError **error);
/** Compiles the deferred regions of @ir now, so that they can be printed. */
gboolean kiln_describe_regions(const KilnIRModule *ir, GError **error);

#endif
