/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that a vendor has compiled, and the calls that run them. */
#ifndef KILN_IR_COMPILED_H
#define KILN_IR_COMPILED_H

#include "graph/base/shared.h"
#include "ir/cache.h"
#include "ir/kernel.h"

/** A region that a vendor compiled: immutable, shared by all declarations of equal regions. @shared
 * counts its references. */
typedef struct KilnCompiled {
    union {
        KilnShared shared;
        KilnCached cached; /* in the kernel cache */
    };
    KilnKernel kernel; /* runs a call: name, workspace (scratch_bytes), packed constant operands */
    const struct KilnVendor *vendor;
    GBytes *packing; /* how it packs: if equal, packed weights are equal. NULL: it packs nothing */
    size_t bytes;    /* of all that it holds, its code included: about */
    int threads;     /* compiled for so many; it runs with so many or fewer */
    bool deferred;   /* the kernel compiles the region when it runs for the first time */
    _Atomic(struct KilnCompiled *) made; /* the result of that; NULL before */
    _Atomic(uint64_t) begun_anew; /* runs that met a number that may not be finite: for tests */
} KilnCompiled;

/** The kernel that runs a call; NULL if nothing is compiled under its name. */
const KilnKernel *kiln_call_kernel(const KilnInstr *instr);
/** The compiled region of a call; NULL if the vendor was not asked yet. */
const KilnCompiled *kiln_call_compiled(const KilnInstr *instr);
/** True for a call whose region is compiled in its first run, which is yet to come. */
bool kiln_call_is_deferred(const KilnInstr *instr);

#endif
