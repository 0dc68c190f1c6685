/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of recurrent_cells.h: whole vectors, then one that is masked. Included by one file per
 * instruction set, which includes its vocabulary before and defines CELLS, the name of the table.
 */
#pragma once

#include "backends/cpu/recurrent_cells.h"
#include "backends/cpu/vector_math.h"

/* LOAD and STORE are given an address; step_<name> is the body for lanes from @j on. */
#define WHOLE_LOAD(p) V_LOAD(p)
#define WHOLE_STORE(p, x) V_STORE(p, x)
#define SOME_LOAD(p) V_LOAD_SOME(p, mask)
#define SOME_STORE(p, x) V_STORE_SOME(p, mask, x)
#define CELL(name)                                                                                 \
    static void name(const KilnCpuCellRow *row)                                                    \
    {                                                                                              \
        int64_t n = row->n, j = 0;                                                                 \
        for (; j + VW <= n; j += VW)                                                               \
            name##_STEP(WHOLE_LOAD, WHOLE_STORE);                                                  \
        if (j < n) {                                                                               \
            MASK mask = V_MASK(n - j);                                                             \
            name##_STEP(SOME_LOAD, SOME_STORE);                                                    \
        }                                                                                          \
    }

/* Gates: input, output, forget, cell. */
#define lstm_STEP(LOAD, STORE)                                                                     \
    do {                                                                                           \
        const float *gate = row->gates + j;                                                        \
        V i = vector_sigmoid(LOAD(gate)), o = vector_sigmoid(LOAD(gate + n));                      \
        V f = vector_sigmoid(LOAD(gate + 2 * n)), g = vector_tanh(LOAD(gate + 3 * n));             \
        V c = V_FMA(f, LOAD(row->c + j), V_MUL(i, g));                                             \
        STORE(row->c + j, c);                                                                      \
        STORE(row->h + j, V_MUL(o, vector_tanh(c)));                                               \
    } while (0)
CELL(lstm)

/* Gates: update, reset. */
#define gru_reset_STEP(LOAD, STORE)                                                                \
    do {                                                                                           \
        const float *gate = row->gates + j;                                                        \
        STORE(row->update + j, vector_sigmoid(LOAD(gate)));                                        \
        STORE(row->h + j, V_MUL(vector_sigmoid(LOAD(gate + n)), LOAD(row->before + j)));           \
    } while (0)
CELL(gru_reset)

static inline V
mix(V update, V candidate, V before)
{
    return V_FMA(V_SUB(V_SET1(1.0f), update), candidate, V_MUL(update, before));
}

/* Gates: hidden. */
#define gru_update_STEP(LOAD, STORE)                                                               \
    STORE(row->h + j,                                                                              \
          mix(LOAD(row->update + j), vector_tanh(LOAD(row->gates + j)), LOAD(row->before + j)))
CELL(gru_update)

/* Gates: update, reset, hidden. */
#define gru_linear_STEP(LOAD, STORE)                                                               \
    do {                                                                                           \
        const float *gate = row->gates + j, *own = row->recurrent + j;                             \
        V z = vector_sigmoid(V_ADD(LOAD(gate), LOAD(own)));                                        \
        V r = vector_sigmoid(V_ADD(LOAD(gate + n), LOAD(own + n)));                                \
        V hidden = vector_tanh(V_FMA(r, LOAD(own + 2 * n), LOAD(gate + 2 * n)));                   \
        STORE(row->h + j, mix(z, hidden, LOAD(row->before + j)));                                  \
    } while (0)
CELL(gru_linear)

const KilnCpuCells CELLS = {
    .lstm = lstm,
    .gru_reset = gru_reset,
    .gru_update = gru_update,
    .gru_linear = gru_linear,
};
