/* SPDX-License-Identifier: Apache-2.0 */
/* lstm in f32: one stage makes all four gates, the new cell and the new state. Operands: y, y_h,
 * y_c, x, w, r, b, lengths, initial_h, initial_c, p. */
#include "backends/cpu/cost.h"
#include "backends/cpu/recurrent.h"

static KilnCpuRecurrent
problem(const KilnInstr *instr)
{
    KilnCpuRecurrent net = kiln_cpu_recurrent_new(instr, 4);
    kiln_cpu_recurrent_add(&net, kiln_cpu_cells(KILN_CPU_ISA_AUTO)->lstm);
    return net;
}

bool
kiln_cpu_lstm_supports(const KilnInstr *instr)
{
    static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
    bool peepholes = cpu_type(instr, 10) != NULL;
    return !peepholes && !kiln_instr_attrs(instr, lstm)->input_forget &&
           kiln_cpu_recurrent_supports(instr, defaults, 3);
}

double
kiln_cpu_lstm_cost(const KilnInstr *instr)
{
    const KilnType *x = cpu_type(instr, 3), *r = cpu_type(instr, 5);
    double terms[KILN_CPU_TERMS];
    kiln_lstm_terms(x->dims[0], x->dims[1], x->dims[2], r->dims[0] * r->dims[2], terms);
    return kiln_cpu_cost(KILN_CPU_COST_lstm, terms);
}

size_t
kiln_cpu_lstm_scratch(const KilnInstr *instr, int threads)
{
    KilnCpuRecurrent net = problem(instr);
    return kiln_cpu_recurrent_scratch(&net, threads);
}

size_t
kiln_cpu_lstm_packed(const KilnInstr *instr)
{
    KilnCpuRecurrent net = problem(instr);
    return kiln_cpu_recurrent_packed(&net);
}

const char *
kiln_cpu_lstm_prepack(const KilnInstr *instr, const void *const *data, void *packed,
                      KilnSlice slice)
{
    KilnCpuRecurrent net = problem(instr);
    kiln_cpu_recurrent_prepack(&net, data, packed, slice);
    return NULL;
}

const char *
kiln_cpu_lstm(const KilnKernelArgs *args)
{
    KilnCpuRecurrent net = problem(args->instr);
    kiln_cpu_recurrent_run(&net, args, 2);
    return NULL;
}
