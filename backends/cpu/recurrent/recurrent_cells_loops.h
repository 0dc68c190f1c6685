/* SPDX-License-Identifier: Apache-2.0 */
/* The template of the stages of recurrent_cells.h. One file per instruction set includes it. That
 * file includes its simd header first. It defines CELLS, the name of the table, and CELL_ROWS: the
 * rows of four vectors of sums that the registers hold.
 *
 * One row has too few independent sums to hide the latency of a fused multiply-add. It keeps two or
 * four sums, each over every second or fourth unit of the state, and adds them at the end. */
#ifndef KILN_BACKENDS_CPU_RECURRENT_RECURRENT_CELLS_LOOPS_H
#define KILN_BACKENDS_CPU_RECURRENT_RECURRENT_CELLS_LOOPS_H

#include "backends/cpu/recurrent/recurrent_cells.h"
#include "backends/cpu/simd/vector_math.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef struct {
    V v[CELL_ROWS][4];
} Sums;

/* --- the state's part of the gates --- */

/* Number j sums row j % rows over every sums-th unit, from unit j / rows on. The sums are numbered
   names, because not every compiler keeps a large array in registers. */
// clang-format off
#if CELL_ROWS == 6
#define EVERY_SUM(X) X(0) X(1) X(2) X(3) X(4) X(5)
#else
#define EVERY_SUM(X) X(0) X(1)
#endif
#define ZERO(j) V a##j = V_SET1(0.0f), b##j = a##j, c##j = a##j, d##j = a##j;
#define STEP(j)                                                                                    \
    if (j < rows * every) {                                                                        \
        V x = V_SET1(state[j % rows * n + k + j / rows]);                                          \
        const float *w = weights + j / rows * width * VW;                                          \
        a##j = V_FMA(x, V_LOAD(w), a##j);                                                          \
        b##j = V_FMA(x, V_LOAD(w + VW), b##j);                                                     \
        c##j = V_FMA(x, V_LOAD(w + 2 * VW), c##j);                                                 \
        if (width > 3)                                                                             \
            d##j = V_FMA(x, V_LOAD(w + 3 * VW), d##j);                                             \
    }
#define KEEP(j)                                                                                    \
    if (j < rows * sums) {                                                                         \
        V *v = part[j / rows].v[j % rows];                                                         \
        v[0] = a##j, v[1] = b##j, v[2] = c##j, v[3] = d##j;                                        \
    }
// clang-format on

ALWAYS_INLINE void
sum_rows(const KilnCpuCell *cell, const int rows, const int sums, const int width, Sums *total)
{
    EVERY_SUM(ZERO)
    const float *restrict weights = cell->weights, *restrict state = cell->state;
    int64_t k = 0, n = cell->n;
    for (; k + sums <= n; k += sums) {
        const int every = sums;
        EVERY_SUM(STEP)
        weights += sums * width * VW;
    }
    for (; sums > 1 && k < n; k++) {
        const int every = 1;
        EVERY_SUM(STEP)
        weights += width * VW;
    }
    Sums part[4];
    EVERY_SUM(KEEP)
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < width; j++) {
            V x = part[0].v[i][j];
            for (int s = 1; s < sums; s++)
                x = V_ADD(x, part[s].v[i][j]);
            total->v[i][j] = x;
        }
    }
}

#if CELL_ROWS == 6
#define SUM_WIDTH(width)                                                                           \
    static void sum_##width(const KilnCpuCell *cell, Sums *total)                                  \
    {                                                                                              \
        switch (cell->rows) {                                                                      \
        case 1:                                                                                    \
            sum_rows(cell, 1, 4, width, total);                                                    \
            break;                                                                                 \
        case 2:                                                                                    \
            sum_rows(cell, 2, 2, width, total);                                                    \
            break;                                                                                 \
        case 3:                                                                                    \
            sum_rows(cell, 3, 2, width, total);                                                    \
            break;                                                                                 \
        case 4:                                                                                    \
            sum_rows(cell, 4, 1, width, total);                                                    \
            break;                                                                                 \
        case 5:                                                                                    \
            sum_rows(cell, 5, 1, width, total);                                                    \
            break;                                                                                 \
        case 6:                                                                                    \
            sum_rows(cell, 6, 1, width, total);                                                    \
            break;                                                                                 \
        }                                                                                          \
    }
#else
#define SUM_WIDTH(width)                                                                           \
    static void sum_##width(const KilnCpuCell *cell, Sums *total)                                  \
    {                                                                                              \
        if (cell->rows == 1)                                                                       \
            sum_rows(cell, 1, 2, width, total);                                                    \
        else                                                                                       \
            sum_rows(cell, 2, 1, width, total);                                                    \
    }
#endif
SUM_WIDTH(3)
SUM_WIDTH(4)

/* --- activations and states --- */

/* One vector of units of one row. */
typedef struct {
    const KilnCpuCell *cell;
    const V *sums;           /* of the row, gate by gate */
    int64_t gate, state, at; /* offsets: into gates, into rows of states, from the first unit */
    MASK mask;
} Spot;

ALWAYS_INLINE V
load_lanes(const float *p, const Spot *s, const bool full)
{
    return full ? V_LOAD(p) : V_LOAD_SOME(p, s->mask);
}

ALWAYS_INLINE void
store_lanes(float *p, const Spot *s, V x, const bool full)
{
    if (full)
        V_STORE(p, x);
    else
        V_STORE_SOME(p, s->mask, x);
}

/* Loads the inputs' part of gate @g of the stage. */
ALWAYS_INLINE V
input_part(const Spot *s, int g, const bool full)
{
    return load_lanes(s->cell->gates + s->gate + g * s->cell->n, s, full);
}

/* A stage sums three or four vectors: some gates of one or more vectors of units. <name>_unit()
   computes the results of one vector of units. */
#define STAGE(name, n_gates, n_vectors, sum)                                                       \
    static void name(const KilnCpuCell *cell)                                                      \
    {                                                                                              \
        Sums sums;                                                                                 \
        sum(cell, &sums);                                                                          \
        for (int64_t i = 0; i < cell->rows; i++) {                                                 \
            for (int64_t j = 0; j < n_vectors && j * VW < cell->units; j++) {                      \
                int64_t left = cell->units - j * VW;                                               \
                Spot spot = { .cell = cell,                                                        \
                              .sums = sums.v[i] + j,                                               \
                              .gate = i * cell->gates_row + j * VW,                                \
                              .state = i * cell->n + j * VW,                                       \
                              .at = j * VW,                                                        \
                              .mask = V_MASK(left) };                                              \
                if (left >= VW)                                                                    \
                    name##_unit(&spot, true);                                                      \
                else                                                                               \
                    name##_unit(&spot, false);                                                     \
            }                                                                                      \
        }                                                                                          \
    }

ALWAYS_INLINE void
rnn_tanh_unit(const Spot *s, const bool full)
{
    V x = V_ADD(input_part(s, 0, full), s->sums[0]);
    store_lanes(s->cell->h + s->state, s, vector_tanh(x), full);
}
STAGE(rnn_tanh, 1, 4, sum_4)

ALWAYS_INLINE void
rnn_relu_unit(const Spot *s, const bool full)
{
    V x = V_ADD(input_part(s, 0, full), s->sums[0]);
    store_lanes(s->cell->h + s->state, s, V_MAX(V_SET1(0.0f), x), full);
}
STAGE(rnn_relu, 1, 4, sum_4)

/* Gates: input, output, forget, cell. */
ALWAYS_INLINE void
lstm_unit(const Spot *s, const bool full)
{
    V i = vector_sigmoid(V_ADD(input_part(s, 0, full), s->sums[0]));
    V o = vector_sigmoid(V_ADD(input_part(s, 1, full), s->sums[1]));
    V f = vector_sigmoid(V_ADD(input_part(s, 2, full), s->sums[2]));
    V g = vector_tanh(V_ADD(input_part(s, 3, full), s->sums[3]));
    float *cell = s->cell->c + s->state;
    V c = V_FMA(f, load_lanes(cell, s, full), V_MUL(i, g));
    store_lanes(cell, s, c, full);
    store_lanes(s->cell->h + s->state, s, V_MUL(o, vector_tanh(c)), full);
}
STAGE(lstm, 4, 1, sum_4)

/* Gates: update, reset; two vectors of units each. */
ALWAYS_INLINE void
gru_gates_unit(const Spot *s, const bool full)
{
    V z = vector_sigmoid(V_ADD(input_part(s, 0, full), s->sums[0]));
    V r = vector_sigmoid(V_ADD(input_part(s, 1, full), s->sums[2]));
    store_lanes(s->cell->update + s->state, s, z, full);
    V before = load_lanes(s->cell->before + s->state, s, full);
    store_lanes(s->cell->scaled + s->state, s, V_MUL(r, before), full);
}
STAGE(gru_gates, 2, 2, sum_4)

ALWAYS_INLINE void
store_mixed(const Spot *s, V update, V candidate, const bool full)
{
    V before = load_lanes(s->cell->before + s->state, s, full);
    V h = V_FMA(V_SUB(V_SET1(1.0f), update), candidate, V_MUL(update, before));
    store_lanes(s->cell->h + s->state, s, h, full);
}

/* Gates: hidden. */
ALWAYS_INLINE void
gru_hidden_unit(const Spot *s, const bool full)
{
    V update = load_lanes(s->cell->update + s->state, s, full);
    V x = V_ADD(input_part(s, 0, full), s->sums[0]);
    store_mixed(s, update, vector_tanh(x), full);
}
STAGE(gru_hidden, 1, 4, sum_4)

/* Gates: update, reset, hidden. */
ALWAYS_INLINE void
gru_linear_unit(const Spot *s, const bool full)
{
    V z = vector_sigmoid(V_ADD(input_part(s, 0, full), s->sums[0]));
    V r = vector_sigmoid(V_ADD(input_part(s, 1, full), s->sums[1]));
    V own = V_ADD(s->sums[2], load_lanes(s->cell->bias + s->at, s, full));
    store_mixed(s, z, vector_tanh(V_FMA(r, own, input_part(s, 2, full))), full);
}
STAGE(gru_linear, 3, 1, sum_3)

const KilnCpuCells CELLS = {
    .vector = VW,
    .max_rows = CELL_ROWS,
    .rnn_tanh = { rnn_tanh, 1, 4 },
    .rnn_relu = { rnn_relu, 1, 4 },
    .lstm = { lstm, 4, 1 },
    .gru_gates = { gru_gates, 2, 2 },
    .gru_hidden = { gru_hidden, 1, 4 },
    .gru_linear = { gru_linear, 3, 1 },
};

#endif
