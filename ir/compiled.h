/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that a vendor has compiled, and the calls that run them. */
#ifndef KILN_IR_COMPILED_H
#define KILN_IR_COMPILED_H

#include "graph/base/shared.h"
#include "ir/cache.h"
#include "ir/kernel.h"

/** What a vendor made of a region: immutable, shared by all declarations of equal regions.
 * References are those of @shared. */
typedef struct KilnCompiled {
    union {
        KilnShared shared;
        KilnCached cached; /* in the kernel cache */
    };
    KilnKernel kernel; /* what runs a call of it: name, workspace (scratch_bytes), packed constant
                          operands */
    const struct KilnVendor *vendor;
    int threads;   /* what it was compiled for: it runs with these or fewer */
    bool deferred; /* the kernel compiles the region when it runs for the first time */
    _Atomic(struct KilnCompiled *) made; /* what comes of that; NULL before */
} KilnCompiled;

/** What runs a call: NULL where nothing is compiled under its name. */
const KilnKernel *kiln_call_kernel(const KilnInstr *instr);
/** What the vendor made of the region of a call; NULL where it was not asked yet. */
const KilnCompiled *kiln_call_compiled(const KilnInstr *instr);

#endif
