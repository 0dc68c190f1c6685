/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_op: the kernel of a plug-in, with the threads of the process. */
#include "ir/plugin.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

bool
kiln_cpu_plugin_op_supports(const KilnInstr *instr)
{
    return kiln_plugin_supports(instr);
}

size_t
kiln_cpu_plugin_op_prepared(const KilnInstr *instr)
{
    return kiln_plugin_prepared(instr);
}

void
kiln_cpu_plugin_op_prepare(const KilnInstr *instr, void *prepared)
{
    kiln_plugin_prepare(instr, prepared);
}

size_t
kiln_cpu_plugin_op_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    return kiln_plugin_scratch(instr, threads);
}

const char *
kiln_cpu_plugin_op(const KilnKernelArgs *args)
{
    return kiln_plugin_run(args, kiln_cpu_parallel);
}
