/* SPDX-License-Identifier: Apache-2.0 */
/* Generates functions of the IR. Size and seed give the same function on every machine. */
#ifndef KILN_BENCH_BENCH_IR_H
#define KILN_BENCH_BENCH_IR_H

#include "ir/ir.h"

/** Returns a module of one function with about @instrs instructions over a few live buffers:
 * convolutions with residuals, dense blocks, branches, concats of slices, chains of arithmetic,
 * transposes and views. As after a lowering that does not care for memory, every value has a buffer
 * of its own, which lives to the end. NULL and @error mean a bug of Kiln. */
KilnIRModule *bench_ir(unsigned instrs, uint64_t seed, GError **error);

#endif
