/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of recurrent nets, per instruction set. A stage sums the state's part of the gates in
 * registers, and computes the activations and the new state at once. A step has one stage, or two
 * if the second multiplies the results of the first.
 *
 * The recurrent weights of a stage lie in panels of `vectors` vectors of units. For each unit of
 * the state, a panel has its weights gate by gate, with zeros behind the last unit. A panel is read
 * once, in order, for up to max_rows rows of the batch. The bits of a unit depend on the shape and
 * the instruction set only. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_RECURRENT_RECURRENT_CELLS_H
#define KILN_BACKENDS_CPU_RECURRENT_RECURRENT_CELLS_H

#include "backends/cpu/isa.h"

#include <stdint.h>

/** One panel for some rows of the batch. Rows of states have @n floats. All pointers except
 * @weights and @state are at the first row and the panel's first unit, if the stage uses them. */
typedef struct {
    int64_t n; /* units of the net, and floats from one gate to the next */
    int64_t rows, units;
    const float *weights;
    const float *state; /* multiplied by the weights; whole rows */
    const float *gates; /* the inputs' part with the biases, from the stage's first gate on */
    int64_t gates_row;  /* floats from one row of gates to the next */
    const float *bias;  /* gru_linear: of the state's part of the hidden gate */
    const float *before;
    float *h, *c;
    float *update, *scaled; /* gru: written by the first stage, read by the second */
} KilnCpuCell;

typedef struct {
    void (*run)(const KilnCpuCell *cell);
    int gates, vectors;
} KilnCpuStage;

typedef struct {
    int64_t vector, max_rows; /* floats; rows of the batch */
    KilnCpuStage rnn_tanh, rnn_relu;
    KilnCpuStage lstm;
    KilnCpuStage gru_gates;  /* update = σ(z), scaled = σ(r) before */
    KilnCpuStage gru_hidden; /* state is scaled: h = (1 - update) tanh(n) + update before */
    KilnCpuStage gru_linear; /* a whole step; the reset gate scales the state's part */
} KilnCpuCells;

extern const KilnCpuCells kiln_cpu_cells_portable;
#if defined(__x86_64__)
extern const KilnCpuCells kiln_cpu_cells_avx2;
extern const KilnCpuCells kiln_cpu_cells_avx512;
#endif

/** Returns the loops of @isa. AUTO is the best of this machine. */
static inline const KilnCpuCells *
kiln_cpu_cells(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, &kiln_cpu_cells);
}

#endif
