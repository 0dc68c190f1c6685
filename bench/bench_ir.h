/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic functions of the IR: the same size and seed give the same function everywhere. */
#ifndef KILN_BENCH_BENCH_IR_H
#define KILN_BENCH_BENCH_IR_H

#include "ir/ir.h"

/** A module of one function with about @instrs instructions, as a lowering without any thought for
 * memory would write it: convolutions with residuals, dense blocks, branches, concats of slices,
 * chains of arithmetic, transposes and views over a few live buffers; every buffer is its own and
 * lives to the end. NULL and @error: our bug. */
KilnIRModule *bench_ir(unsigned instrs, uint64_t seed, GError **error);

#endif
