/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/compiled.h"

static const KilnCompiled *
resolved(const KilnInstr *instr)
{
    return instr->declaration ? (const KilnCompiled *)instr->declaration->compiled : NULL;
}

const KilnKernel *
kiln_call_kernel(const KilnInstr *instr)
{
    const KilnCompiled *compiled = resolved(instr);
    return compiled ? &compiled->kernel : NULL;
}

const KilnCompiled *
kiln_call_compiled(const KilnInstr *instr)
{
    const KilnCompiled *compiled = resolved(instr);
    if (!compiled || !compiled->deferred)
        return compiled;
    return atomic_load_explicit(&compiled->made, memory_order_acquire);
}

bool
kiln_call_is_deferred(const KilnInstr *instr)
{
    return resolved(instr) && !kiln_call_compiled(instr);
}
