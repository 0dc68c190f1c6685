/* SPDX-License-Identifier: Apache-2.0 */
/* gru in f32. The reset gate scales the state before the recurrent weights: two stages, with all
 * but the hidden gate and with the hidden gate; or (linear_before_reset) it scales what they make
 * of the state: one stage, in which R's bias of the hidden gate is added to the state's part.
 * Operands: y, y_h, x, w, r, b, lengths, initial_h. */
#include "backends/cpu/recurrent.h"

static KilnCpuRecurrent
problem(const KilnInstr *instr)
{
    const KilnCpuCells *cells = kiln_cpu_cells(KILN_CPU_ISA_AUTO);
    KilnCpuRecurrent net = kiln_cpu_recurrent_new(instr, 3);
    net.separate = kiln_instr_attrs(instr, gru)->linear_before_reset;
    if (net.separate) {
        kiln_cpu_recurrent_add(&net, cells->gru_linear);
    } else {
        kiln_cpu_recurrent_add(&net, cells->gru_gates);
        kiln_cpu_recurrent_add(&net, cells->gru_hidden);
    }
    return net;
}

bool
kiln_cpu_gru_supports(const KilnInstr *instr)
{
    static const char *const defaults[] = { "Sigmoid", "Tanh" };
    return kiln_cpu_recurrent_supports(instr, defaults, 2);
}

size_t
kiln_cpu_gru_scratch(const KilnInstr *instr, int threads)
{
    KilnCpuRecurrent net = problem(instr);
    return kiln_cpu_recurrent_scratch(&net, threads);
}

size_t
kiln_cpu_gru_packed(const KilnInstr *instr)
{
    KilnCpuRecurrent net = problem(instr);
    return kiln_cpu_recurrent_packed(&net);
}

const char *
kiln_cpu_gru_prepack(const KilnInstr *instr, const void *const *data, void *packed, KilnSlice slice)
{
    KilnCpuRecurrent net = problem(instr);
    kiln_cpu_recurrent_prepack(&net, data, packed, slice);
    return NULL;
}

const char *
kiln_cpu_gru(const KilnKernelArgs *args)
{
    KilnCpuRecurrent net = problem(args->instr);
    kiln_cpu_recurrent_run(&net, args, 0);
    return NULL;
}
