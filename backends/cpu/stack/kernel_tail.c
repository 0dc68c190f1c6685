/* SPDX-License-Identifier: Apache-2.0 */
/* Tails: relu and clip are bounds that kernels keep to in registers, every other activation is a
 * loop of elementwise.h over what was just stored. */
#include "backends/cpu/stack/kernel_tail.h"

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/elementwise/elementwise_find.h"
#include "backends/cpu/isa.h"
#include "ir/tail.h"

#include <math.h>

bool
kiln_cpu_tail_supports(const KilnInstr *instr)
{
    KilnTail tail = kiln_instr_tail(instr);
    bool bounds = tail.activation == KILN_N_INSTRS || tail.activation == KILN_INSTR_clip;
    if (isnan(tail.params[0]) || isnan(tail.params[1]))
        return false;
    return bounds || kiln_cpu_find_unary(tail.activation, &tail.attrs) >= 0;
}

KilnCpuTail
kiln_cpu_tail_of(const KilnInstr *instr)
{
    KilnTail tail = kiln_instr_tail(instr);
    KilnCpuTail found = kiln_cpu_tail_none();
    found.residual = tail.residual != NULL;
    if (tail.activation == KILN_INSTR_relu) {
        found.lo = 0;
    } else if (tail.activation == KILN_INSTR_clip) {
        found.lo = tail.params[0];
        found.hi = tail.params[1];
    } else if (tail.activation != KILN_N_INSTRS) {
        int op = kiln_cpu_find_unary(tail.activation, &tail.attrs);
        found.activation = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->unary[op];
        found.params = kiln_cpu_unary_params(tail.activation, &tail.attrs);
    }
    return found;
}
