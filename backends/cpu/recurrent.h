/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lstm and gru have in common on this backend. All inputs of a block of steps are projected by
 * one product (biases added), then each step adds the state's part to its gates by products of
 * batch rows and lets the cell make the new state. Weights are packed for these products: once when
 * they are constant, else at the start of each run. Private to the folder.
 */
#pragma once

#include "backends/cpu/gemm.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/recurrent_cells.h"

enum {
    KILN_CPU_MAX_PRODUCTS = 3,
};

/** A product with consecutive gates of a weight: op(B) is the gates' rows, transposed. */
typedef struct {
    KilnCpuGemm gemm;
    bool of_state;                   /* R, not W */
    int64_t first_gate;              /* rows of the weight from first_gate × hidden on */
    int64_t packed_at, packed_bytes; /* within one direction's packed weights */
} KilnCpuGateProduct;

/** One step of one direction: gates are [batch, gates × hidden], states [batch, hidden]. */
typedef struct {
    int64_t direction;
    float *gates;
    const float *before;
    float *h, *c;
} KilnCpuStep;

typedef struct KilnCpuRecurrent KilnCpuRecurrent;
struct KilnCpuRecurrent {
    const KilnInstr *instr;
    uint32_t first_in; /* operands x, w, r, b, lengths, initial_h follow */
    int64_t steps, batch, input, hidden, directions, gates;
    int64_t block; /* steps projected at once */
    bool reverse;  /* the only direction goes backwards */
    bool separate; /* gru: the state's part of the gates is kept apart, with its hidden bias */
    int n_products;
    KilnCpuGateProduct products[KILN_CPU_MAX_PRODUCTS]; /* 0: the inputs' */
    int64_t direction_bytes;                            /* of packed weights */
    void (*step)(const KilnCpuRecurrent *net, const KilnCpuStep *at);
    /* while it runs */
    const KilnKernelArgs *args;
    const char *packed;
    float *gemm_scratch, *projected, *bias, *state_bias, *h, *c, *extra;
};

/** True where the shared attributes and operands are what these kernels compute: f32, activations
 * @defaults, steps first, no clip, no lengths. */
bool kiln_cpu_recurrent_supports(const KilnInstr *instr, const char *const *defaults);

/** Fills in shapes and the product of the inputs. */
KilnCpuRecurrent kiln_cpu_recurrent_new(const KilnInstr *instr, int64_t gates);

/** Adds a product of the state with gates [first, first + n). */
void kiln_cpu_recurrent_add(KilnCpuRecurrent *net, int64_t first, int64_t n);

size_t kiln_cpu_recurrent_packed(const KilnCpuRecurrent *net);
void kiln_cpu_recurrent_prepack(const KilnCpuRecurrent *net, const void *const *data, void *packed,
                                KilnSlice slice);
size_t kiln_cpu_recurrent_scratch(const KilnCpuRecurrent *net, int threads);

/** Runs all directions; @y_c is the operand of the last cells, 0 where there is none. */
void kiln_cpu_recurrent_run(KilnCpuRecurrent *net, const KilnKernelArgs *args, uint32_t y_c);

/** out = (bias + a op(B)) + residual of product @i; @bias and @residual may be NULL. */
void kiln_cpu_recurrent_multiply(const KilnCpuRecurrent *net, int i, int64_t direction,
                                 const KilnCpuGemmArgs *operands);

/** Calls @cell for every row of the batch, of which @first is the first. Rows of gates are all
 * gates of the instruction apart, rows of states one state. */
void kiln_cpu_recurrent_rows(const KilnCpuRecurrent *net, KilnCpuCell cell,
                             const KilnCpuCellRow *first);
