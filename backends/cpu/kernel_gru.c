/* SPDX-License-Identifier: Apache-2.0 */
/* gru in f32. The reset gate scales the state before the recurrent weights: two products, with all
 * but the hidden gate and with the hidden gate; or (linear_before_reset) it scales what they make
 * of the state: one product, kept apart from the inputs' part.
 * Operands: y, y_h, x, w, r, b, lengths, initial_h. */
#include "backends/cpu/recurrent.h"

/* The scaled state and the update gate lie in extra. */
static void
step(const KilnCpuRecurrent *net, const KilnCpuStep *at)
{
    const KilnCpuCells *cells = kiln_cpu_cells(KILN_CPU_ISA_AUTO);
    int64_t n = net->hidden;
    float *update = net->extra, *scaled = update + net->batch * n, *hidden = at->gates + 2 * n;
    KilnCpuGemmArgs gates = { .a = at->before, .out = at->gates, .residual = at->gates };
    kiln_cpu_recurrent_multiply(net, 1, at->direction, &gates);
    KilnCpuCellRow reset = {
        .n = n, .gates = at->gates, .before = at->before, .h = scaled, .update = update
    };
    kiln_cpu_recurrent_rows(net, cells->gru_reset, &reset);
    KilnCpuGemmArgs candidate = { .a = scaled, .out = hidden, .residual = hidden };
    kiln_cpu_recurrent_multiply(net, 2, at->direction, &candidate);
    KilnCpuCellRow state = {
        .n = n, .gates = hidden, .before = at->before, .h = at->h, .update = update
    };
    kiln_cpu_recurrent_rows(net, cells->gru_update, &state);
}

static void
linear_step(const KilnCpuRecurrent *net, const KilnCpuStep *at)
{
    KilnCpuGemmArgs gates = { .a = at->before, .out = net->extra, .bias = net->state_bias };
    kiln_cpu_recurrent_multiply(net, 1, at->direction, &gates);
    kiln_cpu_recurrent_rows(net, kiln_cpu_cells(KILN_CPU_ISA_AUTO)->gru_linear,
                            &(KilnCpuCellRow){ .n = net->hidden,
                                               .gates = at->gates,
                                               .recurrent = net->extra,
                                               .before = at->before,
                                               .h = at->h });
}

static KilnCpuRecurrent
problem(const KilnInstr *instr)
{
    KilnCpuRecurrent net = kiln_cpu_recurrent_new(instr, 3);
    net.separate = kiln_instr_attrs(instr, gru)->linear_before_reset;
    net.step = net.separate ? linear_step : step;
    kiln_cpu_recurrent_add(&net, 0, net.separate ? 3 : 2);
    if (!net.separate)
        kiln_cpu_recurrent_add(&net, 2, 1);
    return net;
}

bool
kiln_cpu_gru_supports(const KilnInstr *instr)
{
    static const char *const defaults[] = { "Sigmoid", "Tanh" };
    return kiln_cpu_recurrent_supports(instr, defaults);
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

void
kiln_cpu_gru_prepack(const KilnInstr *instr, const void *const *data, void *packed, KilnSlice slice)
{
    KilnCpuRecurrent net = problem(instr);
    kiln_cpu_recurrent_prepack(&net, data, packed, slice);
}

const char *
kiln_cpu_gru(const KilnKernelArgs *args)
{
    KilnCpuRecurrent net = problem(args->instr);
    kiln_cpu_recurrent_run(&net, args, 0);
    return NULL;
}
