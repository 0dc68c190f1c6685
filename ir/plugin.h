/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction of plug-ins, `plugin_op`: what backends need to run the kernel that a plug-in
 * brings. A backend's own functions call these and add a way to run tasks. */
#ifndef KILN_IR_PLUGIN_H
#define KILN_IR_PLUGIN_H

#include "graph/plugin/plugin.h"
#include "ir/kernel.h"

/** What nothing may remove, double or move past another such instruction: a `plugin_op` that is not
 * pure, and a call, whose effects nobody knows. */
bool kiln_instr_has_effect(const KilnInstr *instr);
/** The name of an instruction in messages: "relu", "com.example:Softsign2 of plug-in F". */
char *kiln_instr_title(const KilnInstr *instr);
/** True where the operator lets operand @in share its bytes with operand @out. */
bool kiln_plugin_may_share(const KilnInstr *instr, uint32_t out, uint32_t in);
/** Operations of a run. */
int64_t kiln_plugin_flops(const KilnInstr *instr);

/* --- a kernel, as KilnKernel has its parts --- */

bool kiln_plugin_supports(const KilnInstr *instr);
size_t kiln_plugin_scratch(const KilnInstr *instr, int threads);
size_t kiln_plugin_prepared(const KilnInstr *instr);
void kiln_plugin_prepare(const KilnInstr *instr, void *prepared);
/** @parallel NULL: one thread. */
const char *kiln_plugin_run(const KilnKernelArgs *args, KilnPluginParallel parallel);

#endif
