/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of rnn, gru and lstm: sequences, directions, layouts, gates. Each instruction has
 * its own cell, which computes the next state from the gates. */
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
    /* set by the caller */
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
    /* set by kiln_ref_recurrent_run */
    const RefRows *rows;
    KilnDType dtype;
    size_t size;
    int64_t steps, batch, input, hidden, directions;
    int64_t direction; /* the current one */
    RefActivation activations[3];
    /* scratch: rows of one step */
    RefValue *in, *h, *c, *gates, *extra;
};

/** Runs all sequences. The caller sets the instruction and the operands of @net. */
const char *kiln_ref_recurrent_run(RefRecurrent *net);

/** Adds to @to the recurrent weights of gate @gate times @state, and their bias. */
void kiln_ref_recurrent_add(const RefRecurrent *net, int gate, const RefValue *state, RefValue *to);

/** Clips @x and applies activation @which of the current direction. */
double kiln_ref_recurrent_activate(const RefRecurrent *net, int which, double x);

#endif
