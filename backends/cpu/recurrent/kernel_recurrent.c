/* SPDX-License-Identifier: Apache-2.0 */
/* rnn, gru and lstm in f32: the stages of a step.
 *
 *   rnn   one stage, with tanh or relu
 *   gru   the reset gate scales the state before the recurrent weights: two stages, with all but
 * the hidden gate and with the hidden gate; or (linear_before_reset) it scales what they make of
 *         the state: one stage, in which R's bias of the hidden gate is added to the state's part
 *   lstm  one stage makes all four gates, the new cell and the new state
 *
 * Operands: y, y_h, x, w, r, b, lengths, initial_h; of lstm y, y_h, y_c, x, w, r, b, lengths,
 * initial_h, initial_c, p. */
#include "backends/cpu/cost.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/recurrent/recurrent.h"
#include "backends/cpu/recurrent/recurrent_cells.h"

static const char *const lstm_names[] = { "Sigmoid", "Tanh", "Tanh" }; /* of gru the first two */
static const char *const tanh_name = "Tanh", *const relu_name = "Relu";

static bool
is_relu(const KilnInstr *instr)
{
    return kiln_instr_attrs(instr, rnn)->activations.n > 0 &&
           kiln_cpu_net_supports(instr, &relu_name, 1);
}

static KilnCpuRecurrent
problem(const KilnInstr *instr, KilnCpuGemmForm form)
{
    const KilnCpuCells *cells = kiln_cpu_cells(KILN_CPU_ISA_AUTO);
    if (instr->kind == KILN_INSTR_lstm) {
        KilnCpuRecurrent net = kiln_cpu_net_new(instr, 4, form);
        kiln_cpu_net_add(&net, cells->lstm);
        return net;
    }
    if (instr->kind == KILN_INSTR_rnn) {
        KilnCpuRecurrent net = kiln_cpu_net_new(instr, 1, form);
        kiln_cpu_net_add(&net, is_relu(instr) ? cells->rnn_relu : cells->rnn_tanh);
        return net;
    }
    KilnCpuRecurrent net = kiln_cpu_net_new(instr, 3, form);
    net.separate = kiln_instr_attrs(instr, gru)->linear_before_reset;
    if (net.separate) {
        kiln_cpu_net_add(&net, cells->gru_linear);
    } else {
        kiln_cpu_net_add(&net, cells->gru_gates);
        kiln_cpu_net_add(&net, cells->gru_hidden);
    }
    return net;
}

bool
kiln_cpu_recurrent_supports(const KilnInstr *instr)
{
    switch (instr->kind) {
    case KILN_INSTR_lstm: /* without peepholes */
        return !cpu_type(instr, 10) && !kiln_instr_attrs(instr, lstm)->input_forget &&
               kiln_cpu_net_supports(instr, lstm_names, 3);
    case KILN_INSTR_gru:
        return kiln_cpu_net_supports(instr, lstm_names, 2);
    default:
        return kiln_cpu_net_supports(instr, &tanh_name, 1) || is_relu(instr);
    }
}

double
kiln_cpu_recurrent_cost(const KilnInstr *instr)
{
    const KilnType *x = cpu_type(instr, 3), *r = cpu_type(instr, 5);
    double terms[KILN_CPU_TERMS];
    kiln_lstm_terms(x->dims[0], x->dims[1], x->dims[2], r->dims[0] * r->dims[2], terms);
    return kiln_cpu_cost(KILN_CPU_COST_lstm, terms);
}

/* Forms of packed weights are those of the product, without the first. */
static KilnCpuGemmForm
gemm_form(uint32_t form)
{
    return (KilnCpuGemmForm)(KILN_CPU_GEMM_STRAIGHT + form);
}

uint32_t
kiln_cpu_recurrent_form(const KilnInstr *instr)
{
    KilnCpuRecurrent net = problem(instr, KILN_CPU_GEMM_BEST);
    return net.inputs.form - KILN_CPU_GEMM_STRAIGHT;
}

/* Weights that are not packed ahead are packed in scratch, as is best for the extents. */
size_t
kiln_cpu_recurrent_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    KilnCpuRecurrent packed = problem(instr, gemm_form(form));
    size_t bytes = kiln_cpu_net_scratch(&packed, threads);
    if (kiln_operand_is_const(instr, packed.first_in + 1) &&
        kiln_operand_is_const(instr, packed.first_in + 2))
        return bytes;
    KilnCpuRecurrent plain = problem(instr, KILN_CPU_GEMM_BEST);
    return MAX(bytes, kiln_cpu_net_scratch(&plain, threads) + kiln_cpu_net_packed(&plain));
}

size_t
kiln_cpu_recurrent_packed(const KilnInstr *instr, uint32_t form)
{
    KilnCpuRecurrent net = problem(instr, gemm_form(form));
    return kiln_cpu_net_packed(&net);
}

const char *
kiln_cpu_recurrent_prepack(const KilnInstr *instr, uint32_t form, const void *const *data,
                           void *packed, KilnSlice slice)
{
    KilnCpuRecurrent net = problem(instr, gemm_form(form));
    kiln_cpu_net_prepack(&net, data, packed, slice);
    return NULL;
}

static bool
lengths_are_inside(const KilnCpuRecurrent *net, const KilnKernelArgs *args)
{
    const uint32_t at = net->first_in + 4;
    const int32_t *lengths = cpu_type(args->instr, at) ? args->data[at] : NULL;
    for (int64_t b = 0; lengths && b < net->batch; b++) {
        if (lengths[b] < 0 || lengths[b] > net->steps)
            return false;
    }
    return true;
}

const char *
kiln_cpu_recurrent(const KilnKernelArgs *args)
{
    KilnCpuRecurrent net =
        problem(args->instr, args->packed ? gemm_form(args->form) : KILN_CPU_GEMM_BEST);
    if (!lengths_are_inside(&net, args))
        return "a sequence length is negative or over the number of steps";
    kiln_cpu_net_run(&net, args, args->instr->kind == KILN_INSTR_lstm ? 2 : 0);
    return NULL;
}
