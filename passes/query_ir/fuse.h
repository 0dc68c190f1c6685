/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share that make one instruction of two of the IR level: the first, which computes a
 * buffer, and the second, which alone reads it. The fused one stands where the first did. */
#ifndef KILN_PASSES_QUERY_IR_FUSE_H
#define KILN_PASSES_QUERY_IR_FUSE_H

#include "passes/query_ir/lives.h"

/** Whether the context's target has a kernel for @fused, which may be a draft, that is no more of a
 * fallback than those of @first and @second. True without a target. */
bool kiln_fuse_has_kernel(const KilnPassContext *context, const KilnInstr *fused,
                          const KilnInstr *first, const KilnInstr *second);
/** Removes @first and @second with the alloc between them, once the fused instruction stands in
 * front of @first and writes operand 0 of @second there. */
void kiln_fuse_finish(KilnLives *lives, KilnInstr *first, KilnInstr *second);

#endif
