/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a recurrent net, per instruction set: what the state adds to the gates is summed in
 * registers, the activations and the new state follow at once. A step has one stage, or two where
 * the second multiplies what the first one makes.
 *
 * The recurrent weights of a stage lie in panels of `vectors` vectors of units: for each unit of
 * the state that is multiplied, gate by gate, the panel's weights, zero behind the last unit. A
 * panel is read from its beginning to its end for up to max_rows rows of the batch: the weights,
 * which every step needs once more, stream by. The bits of a unit follow from the shape and the
 * instruction set. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_RECURRENT_RECURRENT_CELLS_H
#define KILN_BACKENDS_CPU_RECURRENT_RECURRENT_CELLS_H

#include "backends/cpu/isa.h"

#include <stdint.h>

/** One panel for some rows of the batch. Rows of states have @n floats; all pointers but @weights,
 * @state and those that the stage does not use are at the first row and the panel's first unit. */
typedef struct {
    int64_t n; /* units of the net: also between one gate and the next */
    int64_t rows, units;
    const float *weights;
    const float *state; /* whole rows: what the weights multiply */
    const float *gates; /* the inputs' part with the biases, from the stage's first gate on */
    int64_t gates_row;  /* floats between rows of it */
    const float *bias;  /* gru_linear: of the state's part of the hidden gate */
    const float *before;
    float *h, *c;
    float *update, *scaled; /* gru: made by the first stage for the second */
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
    KilnCpuStage gru_hidden; /* of scaled: h = (1 - update) tanh(n) + update before */
    KilnCpuStage gru_linear; /* whole step: the reset gate scales the state's part */
} KilnCpuCells;

extern const KilnCpuCells kiln_cpu_cells_portable;
#if defined(__x86_64__)
extern const KilnCpuCells kiln_cpu_cells_avx2;
extern const KilnCpuCells kiln_cpu_cells_avx512;
#endif

/** The loops of @isa (AUTO: the best here). */
static inline const KilnCpuCells *
kiln_cpu_cells(KilnCpuIsa isa)
{
#if defined(__x86_64__)
    switch (kiln_cpu_isa_resolve(isa)) {
    case KILN_CPU_ISA_AVX512:
        return &kiln_cpu_cells_avx512;
    case KILN_CPU_ISA_AVX2:
        return &kiln_cpu_cells_avx2;
    default:
        break;
    }
#endif
    (void)isa;
    return &kiln_cpu_cells_portable;
}

#endif
