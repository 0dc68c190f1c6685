/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_op: the kernel of a plug-in defines what its operator means, on one thread. */
#include "ir/plugin.h"

#include "backends/ref/kernel.h"

size_t
kiln_ref_plugin_op_prepared(const KilnInstr *instr)
{
    return kiln_plugin_prepared(instr);
}

void
kiln_ref_plugin_op_prepare(const KilnInstr *instr, void *prepared)
{
    kiln_plugin_prepare(instr, prepared);
}

size_t
kiln_ref_plugin_op_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    return kiln_plugin_scratch(instr, threads);
}

const char *
kiln_ref_plugin_op(const KilnKernelArgs *args)
{
    return kiln_plugin_run(args, NULL);
}
