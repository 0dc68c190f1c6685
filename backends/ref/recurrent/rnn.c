/* SPDX-License-Identifier: Apache-2.0 */
/* rnn, gru, lstm: their cells, by the formulas of the ONNX specification. */
#include "backends/ref/kernel.h"
#include "backends/ref/recurrent/recurrent.h"
#include "ir/kernel.h"

/* The address of operand @i; NULL where it is absent. */
static void *
operand(const KilnKernelArgs *args, uint32_t i)
{
    return ref_has(args, i) ? args->data[i] : NULL;
}

/* The operands that all have: data, weights, recurrent weights, bias, lengths, initial state. */
static void
set_operands(RefRecurrent *net)
{
    const KilnKernelArgs *args = net->args;
    net->y = operand(args, 0);
    net->y_h = operand(args, 1);
    net->x = operand(args, net->first_in);
    net->w = operand(args, net->first_in + 1);
    net->r = operand(args, net->first_in + 2);
    net->b = operand(args, net->first_in + 3);
    net->initial_h = operand(args, net->first_in + 5);
}

/* h' = f(gate) */
static void
rnn_cell(const RefRecurrent *net)
{
    kiln_ref_recurrent_add(net, 0, net->h, net->gates);
    for (int64_t j = 0; j < net->hidden; j++)
        net->h[j].f = kiln_ref_recurrent_activate(net, 0, net->gates[j].f);
}

/* Gates: update z, reset r, hidden n. h' = (1 - z) n + z h. The reset gate scales the state before
 * the recurrent weights, or (the variant linear_before_reset) what they and their bias make of it.
 */
static void
gru_cell(const RefRecurrent *net)
{
    int64_t hidden = net->hidden;
    RefValue *z = net->gates, *r = z + hidden, *n = r + hidden, *extra = net->extra;
    kiln_ref_recurrent_add(net, 0, net->h, z);
    kiln_ref_recurrent_add(net, 1, net->h, r);
    for (int64_t j = 0; j < hidden; j++) {
        z[j].f = kiln_ref_recurrent_activate(net, 0, z[j].f);
        r[j].f = kiln_ref_recurrent_activate(net, 0, r[j].f);
        extra[j].f = net->variant ? 0 : r[j].f * net->h[j].f;
    }
    if (net->variant) {
        kiln_ref_recurrent_add(net, 2, net->h, extra);
        for (int64_t j = 0; j < hidden; j++)
            n[j].f += r[j].f * extra[j].f;
    } else {
        kiln_ref_recurrent_add(net, 2, extra, n);
    }
    for (int64_t j = 0; j < hidden; j++) {
        double candidate = kiln_ref_recurrent_activate(net, 1, n[j].f);
        net->h[j].f = (1 - z[j].f) * candidate + z[j].f * net->h[j].f;
    }
}

/* What peephole @which (input, output, forget) of unit @j adds to its gate. */
static double
peephole(const RefRecurrent *net, int which, int64_t j, double c)
{
    int64_t at = (net->direction * 3 + which) * net->hidden + j;
    return net->p ? c * ref_load_float(net->dtype, net->p, at) : 0;
}

/* Gates: input i, output o, forget f, cell g. c' = f c + i g; h' = o tanh(c'). Peepholes show i and
 * f the old cell, o the new one. The variant input_forget couples f = 1 - i. */
static void
lstm_cell(const RefRecurrent *net)
{
    int64_t hidden = net->hidden;
    for (int gate = 0; gate < 4; gate++)
        kiln_ref_recurrent_add(net, gate, net->h, net->gates + gate * hidden);
    for (int64_t j = 0; j < hidden; j++) {
        const RefValue *gate = net->gates + j;
        double c = net->c[j].f;
        double i = kiln_ref_recurrent_activate(net, 0, gate[0].f + peephole(net, 0, j, c));
        double f =
            net->variant
                ? 1 - i
                : kiln_ref_recurrent_activate(net, 0, gate[2 * hidden].f + peephole(net, 2, j, c));
        double g = kiln_ref_recurrent_activate(net, 1, gate[3 * hidden].f);
        c = f * c + i * g;
        double o = kiln_ref_recurrent_activate(net, 0, gate[hidden].f + peephole(net, 1, j, c));
        net->c[j].f = c;
        net->h[j].f = o * kiln_ref_recurrent_activate(net, 2, c);
    }
}

/* operands: y, y_h, x, w, r, b, lengths, initial_h */
const char *
kiln_ref_rnn(const KilnKernelArgs *args)
{
    static const char *const defaults[] = { "Tanh" };
    const KilnInstrAttrs_rnn *attrs = kiln_instr_attrs(args->instr, rnn);
    RefRecurrent net = { .args = args,
                         .attrs = REF_RECURRENT_ATTRS(attrs),
                         .cell = rnn_cell,
                         .n_gates = 1,
                         .n_activations = 1,
                         .defaults = defaults,
                         .first_in = 2 };
    set_operands(&net);
    return kiln_ref_recurrent_run(&net);
}

/* operands: y, y_h, x, w, r, b, lengths, initial_h */
const char *
kiln_ref_gru(const KilnKernelArgs *args)
{
    static const char *const defaults[] = { "Sigmoid", "Tanh" };
    const KilnInstrAttrs_gru *attrs = kiln_instr_attrs(args->instr, gru);
    RefRecurrent net = { .args = args,
                         .attrs = REF_RECURRENT_ATTRS(attrs),
                         .cell = gru_cell,
                         .n_gates = 3,
                         .n_activations = 2,
                         .defaults = defaults,
                         .variant = attrs->linear_before_reset,
                         .first_in = 2 };
    set_operands(&net);
    return kiln_ref_recurrent_run(&net);
}

/* operands: y, y_h, y_c, x, w, r, b, lengths, initial_h, initial_c, p */
const char *
kiln_ref_lstm(const KilnKernelArgs *args)
{
    static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
    const KilnInstrAttrs_lstm *attrs = kiln_instr_attrs(args->instr, lstm);
    RefRecurrent net = { .args = args,
                         .attrs = REF_RECURRENT_ATTRS(attrs),
                         .cell = lstm_cell,
                         .n_gates = 4,
                         .n_activations = 3,
                         .defaults = defaults,
                         .variant = attrs->input_forget,
                         .first_in = 3 };
    set_operands(&net);
    net.y_c = operand(args, 2);
    net.initial_c = operand(args, 9);
    net.p = operand(args, 10);
    return kiln_ref_recurrent_run(&net);
}
