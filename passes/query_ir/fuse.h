/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of passes that fuse two instructions of the IR level. The first one computes a buffer
 * that only the second one reads. The fused one takes the place of the first. */
#ifndef KILN_PASSES_QUERY_IR_FUSE_H
#define KILN_PASSES_QUERY_IR_FUSE_H

#include "passes/pass.h"
#include "passes/query_ir/lives.h"

/** True if the context's target has a kernel for @fused, which may be a draft. It must be no more
 * of a fallback than those of @first and @second. True without a target. */
bool kiln_fuse_has_kernel(const KilnPassContext *context, const KilnInstr *fused,
                          const KilnInstr *first, const KilnInstr *second);
/** Removes @first, @second and the alloc between them. Before that, the fused instruction stands in
 * front of @first and writes operand 0 of @second. */
void kiln_fuse_finish(KilnLives *lives, KilnInstr *first, KilnInstr *second);

#endif
