/* SPDX-License-Identifier: Apache-2.0 */
/* rnn in f32, with tanh or relu. Operands: y, y_h, x, w, r, b, lengths, initial_h. */
#include "backends/cpu/recurrent.h"

static const char *const tanh_name = "Tanh", *const relu_name = "Relu";

static KilnCpuRecurrent
problem(const KilnInstr *instr)
{
    const KilnCpuCells *cells = kiln_cpu_cells(KILN_CPU_ISA_AUTO);
    bool relu = kiln_instr_attrs(instr, rnn)->activations.n > 0 &&
                kiln_cpu_recurrent_supports(instr, &relu_name, 1);
    KilnCpuRecurrent net = kiln_cpu_recurrent_new(instr, 1);
    kiln_cpu_recurrent_add(&net, relu ? cells->rnn_relu : cells->rnn_tanh);
    return net;
}

bool
kiln_cpu_rnn_supports(const KilnInstr *instr)
{
    return kiln_cpu_recurrent_supports(instr, &tanh_name, 1) ||
           kiln_cpu_recurrent_supports(instr, &relu_name, 1);
}

size_t
kiln_cpu_rnn_scratch(const KilnInstr *instr, int threads)
{
    KilnCpuRecurrent net = problem(instr);
    return kiln_cpu_recurrent_scratch(&net, threads);
}

size_t
kiln_cpu_rnn_packed(const KilnInstr *instr)
{
    KilnCpuRecurrent net = problem(instr);
    return kiln_cpu_recurrent_packed(&net);
}

const char *
kiln_cpu_rnn_prepack(const KilnInstr *instr, const void *const *data, void *packed, KilnSlice slice)
{
    KilnCpuRecurrent net = problem(instr);
    kiln_cpu_recurrent_prepack(&net, data, packed, slice);
    return NULL;
}

const char *
kiln_cpu_rnn(const KilnKernelArgs *args)
{
    KilnCpuRecurrent net = problem(args->instr);
    kiln_cpu_recurrent_run(&net, args, 0);
    return NULL;
}
