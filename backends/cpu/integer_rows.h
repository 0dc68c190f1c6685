/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of integer_kernel.h. Included once per instruction set; the file defines the shape of a
 * tile, ROWS and COLS, the table's name INTEGER_KERNELS, and
 *
 *   VI, LANES              a vector of i32, and how many it has
 *   VI_ZERO, VI_STORE(p, v)
 *   VI_BYTES(p)            LANES groups of four bytes of a panel
 *   VI_SPREAD(p)           four bytes of a row, in every group
 *   VI_DOT(sum, u, s)      sum plus the four products of u8 and s8 in each group
 *   VI_TIMES(sum, p, w)    sum plus LANES signed bytes at p times w, of 9 bits and a sign
 *   INTERLEAVE(from, to, c) one group of the 16 columns at @c
 */
#pragma once

#include "backends/cpu/integer_kernel.h"
#include "backends/cpu/quantized_steps.h"
#include "backends/cpu/unrolled.h"

#include <math.h>

enum {
    VECTORS = COLS / LANES,
    RANGE_LANES = 64,
};

/* @n_rows and @vectors are constants where this is inlined, so that all sums stay in registers. */
__attribute__((always_inline)) static inline void
tile_of(int n_rows, int vectors, const uint8_t *const *rows, const int8_t *panel, int64_t groups,
        int32_t *out)
{
    VI sum[ROWS][VECTORS];
    UNROLLED
    for (int r = 0; r < n_rows; r++) {
        UNROLLED
        for (int v = 0; v < vectors; v++)
            sum[r][v] = VI_ZERO;
    }
    for (int64_t g = 0; g < groups; g++, panel += COLS * KILN_INTEGER_GROUP) {
        VI column[VECTORS];
        UNROLLED
        for (int v = 0; v < vectors; v++)
            column[v] = VI_BYTES(panel + v * LANES * KILN_INTEGER_GROUP);
        UNROLLED
        for (int r = 0; r < n_rows; r++) {
            const VI row = VI_SPREAD(rows[r] + g * KILN_INTEGER_GROUP);
            UNROLLED
            for (int v = 0; v < vectors; v++)
                sum[r][v] = VI_DOT(sum[r][v], row, column[v]);
        }
    }
    UNROLLED
    for (int r = 0; r < n_rows; r++) {
        UNROLLED
        for (int v = 0; v < vectors; v++)
            VI_STORE(out + r * COLS + v * LANES, sum[r][v]);
    }
}

static void
tile(int n_rows, int64_t n_cols, const uint8_t *const *rows, const int8_t *panel, int64_t groups,
     int32_t *out)
{
    const int64_t vectors = (n_cols + LANES - 1) / LANES;
    if (n_rows == 1)
        tile_of(1, VECTORS, rows, panel, groups, out);
    else if (vectors == 1 && (int)LANES == (int)KILN_INTEGER_BLOCK)
        tile_of(ROWS, 1, rows, panel, groups, out);
    else if (vectors == 2 && (int)LANES == (int)KILN_INTEGER_BLOCK)
        tile_of(ROWS, 2, rows, panel, groups, out);
    else
        tile_of(ROWS, VECTORS, rows, panel, groups, out);
}

static void
window(const int8_t *base, const int64_t *taps, int64_t n_taps, const uint8_t *row, int32_t zero,
       int32_t *out)
{
    VI sum[VECTORS];
    UNROLLED
    for (int v = 0; v < VECTORS; v++)
        sum[v] = VI_ZERO;
    for (int64_t t = 0; t < n_taps; t++) {
        const int32_t weight = row[t] - zero;
        UNROLLED
        for (int v = 0; v < VECTORS; v++)
            sum[v] = VI_TIMES(sum[v], base + taps[t] + v * LANES, weight);
    }
    UNROLLED
    for (int v = 0; v < VECTORS; v++)
        VI_STORE(out + v * LANES, sum[v]);
}

static void
interleave(const int8_t *const from[KILN_INTEGER_GROUP], int8_t *to)
{
    UNROLLED
    for (int c = 0; c < COLS; c += 16)
        INTERLEAVE(from, to, c);
}

static void
fix(int32_t *sums, int64_t n, const KilnIntegerFix *f)
{
    const uint32_t add = (uint32_t)f->add, row_zero = (uint32_t)f->row_zero,
                   row_sum = (uint32_t)f->row_sum;
    int32_t *restrict to = sums;
    const int32_t *restrict columns = f->sums, *restrict base = f->base, *restrict zeros = f->zeros;
    if (!base) {
        for (int64_t c = 0; c < n; c++)
            to[c] = (int32_t)((uint32_t)to[c] + add - row_zero * (uint32_t)columns[c]);
        return;
    }
    for (int64_t c = 0; c < n; c++)
        to[c] = (int32_t)((uint32_t)to[c] + add + (uint32_t)base[c] -
                          row_zero * (uint32_t)columns[c] - row_sum * (uint32_t)zeros[c]);
}

/* Blocks of a constant number, which need no loops for what is left. */
#define SCALE(T, low, high)                                                                        \
    do {                                                                                           \
        T *restrict to = out;                                                                      \
        const float least = (float)((low)-zero), most = (float)((high)-zero);                      \
        for (int64_t i = 0; i < n; i += KILN_INTEGER_BLOCK, factors += step) {                     \
            for (int k = 0; k < KILN_INTEGER_BLOCK; k++) {                                         \
                to[i + k] = (T)quantized((float)from[i + k] * factors[k], zero, least, most);      \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void
scale(void *out, const int32_t *sums, int64_t n, const KilnIntegerScale *s)
{
    const int32_t *restrict from = sums, zero = s->zero;
    float same[KILN_INTEGER_BLOCK];
    for (int k = 0; k < KILN_INTEGER_BLOCK; k++)
        same[k] = s->factors[0];
    const float *factors = s->per_column ? s->factors : same;
    const int64_t step = s->per_column ? KILN_INTEGER_BLOCK : 0;
    if (s->is_signed)
        SCALE(int8_t, INT8_MIN, INT8_MAX);
    else
        SCALE(uint8_t, 0, UINT8_MAX);
}

static uint32_t
flip(uint8_t *restrict to, const uint8_t *restrict from, int64_t n, uint8_t bit)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        to[i] = from[i] ^ bit;
        sum += to[i];
    }
    return sum;
}

/* Most strides are 1 and 2. */
static void
pick(uint8_t *restrict to, const uint8_t *restrict from, int64_t n, int64_t step, uint8_t bit)
{
    if (step == 1) {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i] ^ bit;
    } else if (step == 2) {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[2 * i] ^ bit;
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i * step] ^ bit;
    }
}

static void
range(const float *x, int64_t n, float *low, float *high)
{
    float least[RANGE_LANES] = { 0 }, most[RANGE_LANES] = { 0 };
    int32_t odd[RANGE_LANES] = { 0 };
    int64_t i = 0;
    for (; i + RANGE_LANES <= n; i += RANGE_LANES) {
        for (int k = 0; k < RANGE_LANES; k++) {
            least[k] = x[i + k] < least[k] ? x[i + k] : least[k];
            most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
            odd[k] |= x[i + k] != x[i + k];
        }
    }
    for (; i < n; i++) {
        least[0] = x[i] < least[0] ? x[i] : least[0];
        most[0] = x[i] > most[0] ? x[i] : most[0];
        odd[0] |= x[i] != x[i];
    }
    for (int k = 1; k < RANGE_LANES; k++) {
        least[0] = least[k] < least[0] ? least[k] : least[0];
        most[0] = most[k] > most[0] ? most[k] : most[0];
        odd[0] |= odd[k];
    }
    *low = odd[0] ? NAN : least[0];
    *high = odd[0] ? NAN : most[0];
}

const KilnIntegerKernels INTEGER_KERNELS = {
    .rows = ROWS,
    .cols = COLS,
    .tile = tile,
    .window = window,
    .interleave = interleave,
    .fix = fix,
    .scale = scale,
    .flip = flip,
    .pick = pick,
    .range = range,
};
