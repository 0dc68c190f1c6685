/* SPDX-License-Identifier: Apache-2.0 */
/* The common parts of rnn, gru and lstm. One product projects all inputs of a block of steps and
 * adds the biases. Then a team of threads walks the steps. Each member has its own panels of units
 * (recurrent_cells.h), whose weights stay in its caches. It waits for the others once per stage.
 * Rows of sequences that are over, or backwards have not begun, are left out where they stand at an
 * end of the batch.
 * Constant weights are packed once, others by all threads at the start of each run. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_RECURRENT_RECURRENT_H
#define KILN_BACKENDS_CPU_RECURRENT_RECURRENT_H

#include "backends/cpu/cost.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/recurrent/recurrent_cells.h"
#include "ir/kernel.h"

enum {
    KILN_CPU_MAX_STAGES = 2,
};

/** A stage and its weights: the rows of R from first_gate × hidden on. */
typedef struct {
    KilnCpuStage code;
    int64_t first_gate;
    int64_t width, panels; /* units of a panel; number of panels */
    int64_t panel_floats;
    int64_t packed_at; /* bytes, within one direction's packed weights */
    bool of_scaled;    /* multiplies the result of the stage before, not the state */
} KilnCpuRecurrentStage;

/** The rows of the batch that a step computes, and where their inputs' part lies. */
typedef struct {
    int64_t first, end; /* both 0: none */
    int64_t at;         /* row of what is projected */
} KilnCpuStepRows;

typedef struct {
    const KilnInstr *instr;
    uint32_t first_in; /* index of x; w, r, b, lengths, initial_h follow */
    int64_t steps, batch, input, hidden, directions, gates;
    int64_t block;      /* steps projected at once */
    int64_t row_blocks; /* blocks of rows of the batch in a stage */
    bool reverse;       /* the only direction goes backwards */
    bool separate;      /* gru: R's bias of the last gate is kept apart from the inputs' part */
    KilnCpuGemm inputs;
    int n_stages;
    KilnCpuRecurrentStage stages[KILN_CPU_MAX_STAGES];
    int64_t direction_bytes; /* of the packed weights of a direction; W's come first */
    /* set during a run */
    const KilnKernelArgs *args;
    const char *packed;
    float *gemm_scratch, *projected, *bias, *state_bias;
    float *chosen;         /* inputs of the rows that a block of steps computes; with lengths */
    KilnCpuStepRows *rows; /* per step of a block; with lengths */
    float *h[2];           /* states before and after a step, in turn, if there is no Y */
    float *c, *update, *scaled;
} KilnCpuRecurrent;

/** True if these kernels compute the shared attributes and operands: f32, the @n activations
 * @defaults, steps first, no clip. */
bool kiln_cpu_net_supports(const KilnInstr *instr, const char *const *defaults, uint32_t n);

/** Fills in shapes and the product of the inputs, whose weights have @form. If that is
 * KILN_CPU_GEMM_BEST, they have the best one for all rows of a block. */
KilnCpuRecurrent kiln_cpu_net_new(const KilnInstr *instr, int64_t gates, KilnCpuGemmForm form);

/** Adds a stage to each step; its gates follow those of the stages before. */
void kiln_cpu_net_add(KilnCpuRecurrent *net, KilnCpuStage code);

/** Bytes of packed weights: a multiple of a line. */
size_t kiln_cpu_net_packed(const KilnCpuRecurrent *net);
void kiln_cpu_net_prepack(const KilnCpuRecurrent *net, const void *const *data, void *packed,
                          KilnSlice slice);
/** Bytes of scratch for a run with any lengths. Weights that are packed there come on top. */
size_t kiln_cpu_net_scratch(const KilnCpuRecurrent *net, int threads);

/** Runs all directions. @y_c is the index of the operand for the last cells; 0: none. */
void kiln_cpu_net_run(KilnCpuRecurrent *net, const KilnKernelArgs *args, uint32_t y_c);

/** Terms of an LSTM: products with inputs; products with states; steps; the call. */
void kiln_lstm_terms(int64_t steps, int64_t batch, int64_t in, int64_t hidden,
                     double terms[KILN_CPU_TERMS]);

#endif
