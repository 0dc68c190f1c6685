/* SPDX-License-Identifier: Apache-2.0 */
/* What rnn, gru and lstm have in common: sequences, directions, layouts, gates. Each brings the
 * cell that makes the next state of the gates. */
#ifndef KILN_BACKENDS_REF_RECURRENT_RECURRENT_H
#define KILN_BACKENDS_REF_RECURRENT_RECURRENT_H

#include "backends/ref/gemm/inner_loops.h"
#include "ir/kernel.h"

/** An activation function with its two parameters. */
typedef struct {
    double (*fn)(double x, double alpha, double beta);
    double alpha, beta;
} RefActivation;

/** The attributes that the three instructions share. */
typedef struct {
    KilnFloats activation_alpha, activation_beta;
    KilnStrings activations;
    double clip; /* 0: none */
    const char *direction;
    bool batch_first;
} RefRecurrentAttrs;

#define REF_RECURRENT_ATTRS(attrs)                                                                 \
    ((RefRecurrentAttrs){ (attrs)->activation_alpha, (attrs)->activation_beta,                     \
                          (attrs)->activations, (double)(attrs)->clip, (attrs)->direction,         \
                          (attrs)->layout == 1 })

typedef struct RefRecurrent RefRecurrent;
struct RefRecurrent {
    /* what the instruction states */
    const KilnKernelArgs *args;
    RefRecurrentAttrs attrs;
    void (*cell)(const RefRecurrent *net); /* from gates, h and c to h and c */
    int n_gates;
    int n_activations; /* per direction */
    const char *const *defaults;
    bool variant; /* linear_before_reset of gru, input_forget of lstm */
    uint32_t first_in;
    /* operands; NULL where absent */
    void *y, *y_h, *y_c;
    const void *x, *w, *r, *b, *initial_h, *initial_c, *p;
    /* found by kiln_ref_recurrent_run */
    const RefRows *rows;
    KilnDType dtype;
    size_t size;
    int64_t steps, batch, input, hidden, directions;
    int64_t direction; /* the current one */
    RefActivation activations[3];
    /* scratch: rows of one step */
    RefValue *in, *h, *c, *gates, *extra;
};

/** Runs all sequences. @net states the instruction and its operands. */
const char *kiln_ref_recurrent_run(RefRecurrent *net);

/** Bytes of scratch for @n_gates gates; the weights' operands follow @first_in, the data. */
size_t kiln_ref_recurrent_bytes(const KilnInstr *instr, uint32_t first_in, int n_gates);

/** Adds the recurrent weights and bias of gate @gate, applied to @state, to @to. */
void kiln_ref_recurrent_add(const RefRecurrent *net, int gate, const RefValue *state, RefValue *to);

/** Activation @which of the current direction, of @x clipped. */
double kiln_ref_recurrent_activate(const RefRecurrent *net, int which, double x);

#endif
