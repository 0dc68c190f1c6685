/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a program that was loaded: the file says what binding has to know of them, and the
 * vendor is told of each when it runs for the first time. */
#ifndef KILN_RUNTIME_DEFERRED_H
#define KILN_RUNTIME_DEFERRED_H

#include "ir/kernel.h"
#include "runtime/program_file.h"

#include "ir/vendor.h"

/** What a file keeps of the call @instr of @kernel: all but the place of its scratch. */
KilnStoredCall kiln_stored_call(const KilnInstr *instr, const KilnKernel *kernel, int threads);
/** One byte per operand of the call @instr: 1 where @kernel packs it, else 0. */
GBytes *kiln_stored_operands(const KilnInstr *instr, const KilnKernel *kernel);

/** Gives the calls of the entry of @ir, for which @file has room, kernels as the file has them. The
 * first run of such a kernel has @target's vendor compile the body, and fails where
 * what comes out is not what the file says: whatever that is, no memory is touched that was not
 * planned. Thread-safe then. */
gboolean kiln_defer_regions(KilnIRModule *ir, const KilnProgramFile *file, const KilnTarget *target,
                            GError **error);
/** Compiles what is deferred of @ir now: for who prints what the vendor makes of it. */
gboolean kiln_describe_regions(const KilnIRModule *ir, GError **error);

#endif
